//! Calls as bytes: what a caller sends, in full control of every line.

/// A request in the making. Lines stand in the order they were given.
#[derive(Clone, Debug)]
pub struct Post {
    start: String,
    lines: Vec<Vec<u8>>,
    body: Vec<u8>,
    has_length: bool,
}

impl Post {
    /// A POST with `Host` and JSON content type.
    pub fn to(target: &str) -> Self {
        Self::bare(target)
            .field("Host", "gw.example")
            .field("Content-Type", "application/json")
    }

    /// A POST without any line.
    pub fn bare(target: &str) -> Self {
        Self::method("POST", target)
    }

    /// A request of another method without any line.
    pub fn method(method: &str, target: &str) -> Self {
        Self {
            start: format!("{method} {target} HTTP/1.1"),
            lines: Vec::new(),
            body: Vec::new(),
            has_length: method == "POST",
        }
    }

    /// Another field; characters stand for latin-1 bytes.
    pub fn field(self, name: &str, value: &str) -> Self {
        self.line(format!("{name}: {value}"))
    }

    /// A whole line; characters stand for latin-1 bytes.
    pub fn line(mut self, line: impl AsRef<str>) -> Self {
        let latin1 = |character: char| u8::try_from(u32::from(character)).unwrap();
        self.lines.push(line.as_ref().chars().map(latin1).collect());
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Leaves `Content-Length` to the caller.
    pub fn without_length(mut self) -> Self {
        self.has_length = false;
        self
    }

    /// The head alone, with the length of the body.
    pub fn head(&self) -> Vec<u8> {
        let mut bytes = self.start.clone().into_bytes();
        bytes.extend_from_slice(b"\r\n");
        for line in &self.lines {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(b"\r\n");
        }
        if self.has_length {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// A call that asks for the dealer's information. The id is JSON text.
pub fn call(id: &str) -> String {
    message(id, r#"{"type":"dealer.information.request"}"#)
}

/// A call that files a lead.
pub fn lead(id: &str, idempotency_key: Option<&str>) -> String {
    let key =
        idempotency_key.map_or_else(String::new, |key| format!(r#","idempotency_key":"{key}""#));
    message(id, &format!(r#"{{"type":"lead.submit.request"{key}}}"#))
}

/// A call that searches.
pub fn search(id: &str) -> String {
    message(id, r#"{"type":"inventory.search.request"}"#)
}

fn message(id: &str, data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"SendMessage","params":{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}}}"#
    )
}

/// A POST of a call to the usual endpoint.
pub fn post(body: impl AsRef<[u8]>) -> Vec<u8> {
    Post::to("/a2a").body(body).bytes()
}
