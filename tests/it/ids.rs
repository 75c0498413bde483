//! The id of a call comes back byte for byte in every refusal that carries one.

use crate::support::call::call;
use crate::support::gateway::{dealer, dealer_at, dealer_with};
use crate::support::{Gateway, Nobody, Post, Upstream};

/// Ids as JSON text, each of which must come back exactly so.
fn ids() -> Vec<String> {
    let long = format!("\"{}\"", "x".repeat(4096));
    [
        "42",
        "0",
        "-0",
        "-1",
        r#""""#,
        r#""0""#,
        "null",
        "1.5",
        "1.0",
        "1e2",
        "1E+2",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "123456789012345678901234567890.5",
        r#""\u0041\/\ud83d\ude97""#,
        r#""🚗 é \n\t\"\\""#,
        r#""req_001""#,
        &long,
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn in_a_refused_version() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for id in ids() {
        let post = Post::to("/a2a")
            .field("A2A-Version", "99.0")
            .body(call(&id));
        let answer = client.ask(post.bytes());
        assert_eq!(answer.code(), -32009);
        assert_eq!(answer.id(), id);
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn in_every_other_refusal_that_carries_one() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[quota.tight]\nper = \"all\"\nrate = \"1/day\"\nshared = true\n{}\
         [endpoint.tight]\npath = \"/tight\"\nupstream = \"lakeside\"\nquotas = [\"tight\"]\n",
        dealer_with(&upstream, "", "methods = [\"SendMessage\"]")
    ));
    assert_eq!(
        gateway
            .ask(Post::to("/tight").body(call("1")).bytes())
            .status,
        200
    );
    upstream.take();
    let renamed = |id: &str, method: &str| call(id).replace("SendMessage", method);
    let other = "https://ext.example/other/v1";
    let mut client = gateway.client();
    for id in ids() {
        for (code, post) in [
            (
                -32008,
                Post::to("/a2a")
                    .field("A2A-Extensions", other)
                    .body(call(&id)),
            ),
            (-32601, Post::to("/a2a").body(renamed(&id, "message/send"))),
            (-32601, Post::to("/a2a").body(renamed(&id, "Unknown"))),
            (-32004, Post::to("/a2a").body(renamed(&id, "GetTask"))),
            (
                -32003,
                Post::to("/a2a").body(renamed(&id, "GetTaskPushNotificationConfig")),
            ),
            (-32000, Post::to("/tight").body(call(&id))),
            (
                -32600,
                Post::to("/a2a").body(call(&id).replace("\"2.0\"", "\"1.0\"")),
            ),
            (
                -32600,
                Post::to("/a2a")
                    .body(call(&id).replace("\"params\"", "\"method\":\"X\",\"params\"")),
            ),
        ] {
            let answer = client.ask(post.bytes());
            assert_eq!(answer.code(), code, "{id}");
            assert_eq!(answer.id(), id, "{code}");
            assert_eq!(answer.head.one("content-type").unwrap(), "application/json");
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn in_a_fault() {
    let nobody = Nobody::new();
    let gateway = Gateway::start(&dealer_at(nobody.address, "", ""));
    let mut client = gateway.client();
    for id in ids() {
        let answer = client.ask(Post::to("/a2a").body(call(&id)).bytes());
        assert_eq!((answer.status, answer.code()), (502, -32603));
        assert_eq!(answer.id(), id);
    }
}

#[test]
fn wherever_it_stands() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&dealer(&upstream));
    let mut client = gateway.client();
    let filler = "x".repeat(900 * 1024);
    for body in [
        format!(
            r#"{{"jsonrpc":"2.0","method":"SendMessage","params":{{"pad":"{filler}"}},"id":1.0}}"#
        ),
        r#"{"params":{"id":"nested","message":{"id":7}},"id":1.0,"jsonrpc":"2.0","method":"M"}"#
            .into(),
        r#" { "id" : 1.0 , "jsonrpc":"2.0","method":"M"} "#.into(),
        r#"{"\u0069d":1.0,"jsonrpc":"2.0","method":"M"}"#.into(),
    ] {
        let post = Post::to("/a2a").field("A2A-Version", "99.0").body(body);
        let answer = client.ask(post.bytes());
        assert_eq!((answer.code(), answer.id().as_str()), (-32009, "1.0"));
    }
}

#[test]
fn null_where_it_is_none_or_two() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    let two = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{},"id":"x"}"#;
    let escaped = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{},"i\u0064":"x"}"#;
    let none = r#"{"jsonrpc":"2.0","method":"SendMessage","params":{}}"#;
    let bodies = [two, escaped, none].map(str::to_owned).into_iter();
    let bodies = bodies.chain(["true", "false", "{}", "[1]"].map(call));
    for body in bodies {
        let answer = client.ask(Post::to("/a2a").body(&body).bytes());
        assert_eq!(
            (answer.code(), answer.id().as_str()),
            (-32600, "null"),
            "{body}"
        );
    }
    assert_eq!(upstream.count(), 0);
}
