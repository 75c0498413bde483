//! Callers come and go while connections are open.

use super::*;

#[test]
fn a_reload_counts_from_the_next_request_on() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = \"caller\"\nrate = \"4/day\"\n";
    let of_endpoint = "authenticate = \"required\"\nquotas = [\"q\"]";
    let with = |callers: &str| configuration(&upstream, &format!("{quota}{callers}"), of_endpoint);
    let acme = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|key| digest(key)).collect();
        format!("[caller.acme]\nkey_sha256 = {keys:?}\n")
    };
    let gateway = Gateway::start(&with(&acme(&[ACME])));
    let mut client = gateway.client();
    let mut status = |key: &str| ask(&mut client, &[("X-Api-Key", key)]).status;
    let put = |callers: &str| {
        gateway.write(&with(callers));
        gateway.inner.reload().unwrap();
    };
    assert_eq!(
        [status(ACME), status(ACME_NEXT), status(BETA)],
        [200, 401, 401]
    );
    // A second key, for as long as the first is still about.
    put(&acme(&[ACME, ACME_NEXT]));
    assert_eq!([status(ACME), status(ACME_NEXT)], [200, 200]);
    put(&acme(&[ACME_NEXT]));
    assert_eq!([status(ACME), status(ACME_NEXT)], [401, 200]);
    assert_eq!(upstream.count(), 4);
    // What was used stays used, whatever it was proven by.
    let beta = format!("[caller.beta]\nkey_sha256 = \"{}\"\n", digest(BETA));
    put(&format!("{beta}{}", acme(&["fc_third"])));
    assert_eq!([status("fc_third"), status(BETA)], [200, 200]);
    assert_eq!(upstream.count(), 5);
    let lines = gateway.access_log();
    let outcomes: Vec<_> = lines
        .iter()
        .rev()
        .take(2)
        .map(|it| &it["outcome"])
        .collect();
    assert_eq!(outcomes, ["ok", "rate_limited"]);
    // The key of one becomes another's.
    put(&format!(
        "[caller.gamma]\nkey_sha256 = \"{}\"\n",
        digest("fc_third")
    ));
    assert_eq!([status("fc_third"), status(BETA)], [200, 401]);
    assert_eq!(upstream.count(), 6);
    let caller = gateway
        .access_log()
        .iter()
        .rev()
        .nth(1)
        .map(|it| it["caller"].clone());
    assert_eq!(caller.unwrap(), "gamma");
}

#[test]
fn an_endpoint_begins_and_ceases_to_ask() {
    let upstream = Upstream::recording();
    let put = |gateway: &Gateway, of_endpoint: &str| {
        gateway.write(&configuration(&upstream, &callers(), of_endpoint));
        gateway.inner.reload().unwrap();
    };
    let gateway = start(&upstream, "");
    let mut client = gateway.client();
    let mut status = |fields: &[(&str, &str)]| ask(&mut client, fields).status;
    assert_eq!(status(&[("X-Api-Key", "fc_other")]), 200);
    put(&gateway, "authenticate = \"optional\"");
    assert_eq!(
        [status(&[]), status(&[("X-Api-Key", "fc_other")])],
        [200, 401]
    );
    put(&gateway, "authenticate = \"required\"");
    assert_eq!([status(&[]), status(&[("X-Api-Key", ACME)])], [401, 200]);
    assert_eq!(examined(&gateway), [1.0, 2.0, 1.0, 0.0]);
    put(&gateway, "authenticate = \"off\"");
    assert_eq!(status(&[]), 200);
    // What is configured away is scraped no longer.
    assert!(
        !gateway
            .admin_get("/metrics")
            .text()
            .contains("credentials_total{")
    );
}

#[test]
fn a_bad_file_leaves_the_callers_there_are() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let twice = callers().replace(&digest(BETA), &digest(ACME));
    gateway.write(&configuration(
        &upstream,
        &twice,
        "authenticate = \"required\"",
    ));
    let refused = gateway.inner.reload().unwrap_err().to_string();
    assert!(refused.contains("is also caller.acme's"), "{refused}");
    let mut client = gateway.client();
    assert_eq!(ask(&mut client, &[("X-Api-Key", ACME)]).status, 200);
    assert_eq!(ask(&mut client, &[("X-Api-Key", BETA)]).status, 403);
    assert!(PRELUDE.contains("workers = 1"));
}
