//! Decides what is sent and answered: a JSON-RPC call as an SDK writes it, compact, of 1 KB or
//! 100 KB, and answers of the same sizes. The same bytes for everyone who is measured.

/// The extension that the endpoint is pinned to.
pub(crate) const EXTENSION: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

/// The `id` of every call, as it stands in the text.
pub(crate) const ID: &str = "\"req_7f3a9c21\"";

/// One kilobyte.
pub(crate) const SMALL: usize = 1024;
/// A hundred of them.
pub(crate) const LARGE: usize = 100 * 1024;

/// `SendMessage` with one data part that searches an inventory; `size` bytes, the rest in a note.
pub(crate) fn call(size: usize) -> Vec<u8> {
    filled(size, |note| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{ID},"method":"SendMessage","params":{{"message":{{"messageId":"6f1d2c9e-4a57-4b0e-9a63-0b1f7f3c2d10","contextId":"ctx-51d0","role":"ROLE_USER","parts":[{{"data":{{"type":"inventory.search.request","filters":{{"make":["Honda","Toyota"],"model":["Civic","Corolla"],"year":{{"min":2021,"max":2024}},"price":{{"max":32000,"currency":"USD"}},"mileage":{{"max":45000,"unit":"mi"}},"bodyStyle":["sedan","hatchback"],"condition":"used"}},"sort":[{{"field":"price","order":"asc"}}],"page":{{"size":20,"cursor":null}},"note":"{note}"}},"mediaType":"application/vnd.autoagent.inventory-search-request+json"}}],"metadata":{{"source":"buyer-assistant/2.4","locale":"en-US"}}}},"configuration":{{"acceptedOutputModes":["application/vnd.autoagent.inventory-search-response+json"],"blocking":true}}}}}}"#
        )
    })
}

/// What the dealer answers, `size` bytes.
pub(crate) fn answer(size: usize) -> Vec<u8> {
    filled(size, |note| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{ID},"result":{{"message":{{"messageId":"a-90b1","contextId":"ctx-51d0","role":"ROLE_AGENT","parts":[{{"data":{{"type":"inventory.search.response","total":1,"vehicles":[{{"vin":"2HGFE2F59PH500001","make":"Honda","model":"Civic","year":2023,"price":24990,"currency":"USD","mileage":18250,"condition":"used","bodyStyle":"sedan","exteriorColor":"Sonic Gray Pearl","url":"https://lakeside.example.com/vehicles/2HGFE2F59PH500001"}}],"page":{{"cursor":null}},"note":"{note}"}},"mediaType":"application/vnd.autoagent.inventory-search-response+json"}}]}}}}}}"#
        )
    })
}

fn filled(size: usize, text: impl Fn(&str) -> String) -> Vec<u8> {
    const NOTE: &str = "Wants a test drive on Saturday, one owner, service history, winter tyres. ";
    let missing = size.saturating_sub(text("").len());
    let note: String = NOTE.chars().cycle().take(missing).collect();
    text(&note).into_bytes()
}

/// How a caller's request begins and how its key is found again in it.
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// Where the eight digits of the caller's key stand.
    key: usize,
}

impl Request {
    /// A POST of `body` to `path` with further `headers`.
    pub(crate) fn new(path: &str, headers: &[(String, String)], body: &[u8]) -> Self {
        let mut bytes = format!(
            "POST {path} HTTP/1.1\r\nHost: lakeside.example.com\r\nUser-Agent: a2a-sdk/1.0\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             X-API-Key: buyer-"
        )
        .into_bytes();
        let key = bytes.len();
        bytes.extend_from_slice(b"00000000-4f1c2b7a9d3e\r\n");
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        Self { bytes, key }
    }

    /// Makes it the request of caller number `number`.
    pub(crate) fn of_caller(&mut self, number: u64) {
        let digits = format!("{number:08}");
        if let Some(place) = self.bytes.get_mut(self.key..self.key + 8) {
            place.copy_from_slice(&digits.as_bytes()[..8]);
        }
    }
}
