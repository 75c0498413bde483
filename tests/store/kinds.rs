//! Every kind of store: with a password, over TLS, a cluster, behind sentinels.

use crate::redis::{Redis, free_port};
use crate::setting::{
    PATIENT, asks, configured, connected, gateway, is_degraded, quota, source, wait,
};
use crate::support::tls::Authority;
use crate::support::wait::elapse;
use crate::support::{Gateway, Upstream, wait_until};
use crate::tests;

tests!(a_password, tls, a_cluster, sentinels);

/// Three are let through, by the store, and the fourth is not.
#[track_caller]
fn counts(gateway: &Gateway, key: &str) {
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(wait(&asks(&mut client, key)), None);
        assert_eq!(source(gateway), "store");
    }
    assert!(wait(&asks(&mut client, key)).is_some());
}

fn a_password() {
    let redis = Redis::start_with(&["--requirepass", "open sesame"]);
    let upstream = Upstream::recording();
    let quotas = quota("3/day", 3);
    let url = format!("redis://:open%20sesame@{}/2", redis.address);
    counts(&gateway(&upstream, &url, &quotas), "one");
    let store = format!("{PATIENT}\nusername = \"default\"\npassword = \"open sesame\"");
    let other = Gateway::start(&configured(
        &upstream,
        &format!("{}/3", redis.url()),
        &store,
        &quotas,
    ));
    connected(&other);
    counts(&other, "one");
    // Each in its database.
    assert_eq!(redis.ask(&["DBSIZE"]), ":0");
}

fn tls() {
    let authority = Authority::new("Store Root");
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_owned();
    authority
        .issue(&["localhost"])
        .write(directory.path(), "store");
    std::fs::write(name("ca.pem"), authority.pem()).unwrap();
    let port = free_port();
    let (certificate, key, ca) = (name("store.pem"), name("store.key"), name("ca.pem"));
    let tls_port = port.to_string();
    let _redis = Redis::start_in(
        tempfile::tempdir().unwrap(),
        port,
        &[
            "--port",
            "0",
            "--tls-port",
            &tls_port,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
        ],
    );
    let upstream = Upstream::recording();
    let quotas = quota("3/day", 3);
    let with = |url: &str, ca: &str| {
        let store = format!("{PATIENT}\nca = {ca:?}");
        Gateway::start(&configured(&upstream, url, &store, &quotas))
    };
    let known = with(&format!("rediss://localhost:{port}"), &ca);
    connected(&known);
    counts(&known, "one");
    // The name must be the certificate's, and its issuer one of the roots.
    let stranger = name("stranger.pem");
    std::fs::write(&stranger, Authority::new("Another Root").pem()).unwrap();
    let wrong = [
        with(&format!("rediss://127.0.0.1:{port}"), &ca),
        with(&format!("rediss://localhost:{port}"), &stranger),
    ];
    elapse(std::time::Duration::from_millis(300));
    for gateway in &wrong {
        assert!(is_degraded(gateway));
        let mut client = gateway.client();
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(gateway), "fallback");
    }
}

/// Three servers that are one.
pub fn cluster() -> Vec<Redis> {
    let nodes: Vec<Redis> = (0..3)
        .map(|_| {
            // The second port of a node is its first and 10,000.
            let port = loop {
                let port = free_port();
                if port < 55_000 {
                    break port;
                }
            };
            let directory = tempfile::tempdir().unwrap();
            Redis::start_in(
                directory,
                port,
                &["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"],
            )
        })
        .collect();
    for (index, node) in nodes.iter().enumerate() {
        let (from, to) = (index * 5462, (index * 5462 + 5461).min(16383));
        let range = [from.to_string(), to.to_string()];
        assert_eq!(
            node.ask(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]),
            "+OK"
        );
        let epoch = (index + 1).to_string();
        node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
    }
    for node in &nodes[1..] {
        let port = node.address.port().to_string();
        assert_eq!(
            nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &port]),
            "+OK"
        );
    }
    for node in &nodes {
        wait_until("the cluster is whole", || {
            let info = node.ask(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    nodes
}

fn a_cluster() {
    let nodes = cluster();
    let upstream = Upstream::recording();
    let store = format!(
        "{PATIENT}\ncluster = true\nnodes = [\"{}\"]",
        nodes[1].address
    );
    // Two buckets for each call, which mostly stand in different parts of the cluster.
    let quotas = "[quota.wide]\nper = \"all\"\nrate = \"10/day\"\nburst = 10\nstore = \"central\"\n\
                  [quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1\nstore = \"central\"\n";
    let gateways = [(); 2].map(|()| {
        let gateway = Gateway::start(&configured(&upstream, &nodes[0].url(), &store, quotas));
        connected(&gateway);
        gateway
    });
    let mut clients = gateways.each_ref().map(|it| it.client());
    for caller in 0..9 {
        let key = format!("caller-{caller}");
        assert_eq!(wait(&asks(&mut clients[caller % 2], &key)), None, "{key}");
        assert_eq!(source(&gateways[caller % 2]), "store");
        // The other gateway does not know yet: the wide quota grants, the narrow one refuses, and
        // what the wide one granted is given back.
        assert!(wait(&asks(&mut clients[(caller + 1) % 2], &key)).is_some());
        assert_eq!(gateways[(caller + 1) % 2].last_line()["quota"], "q");
    }
    let size = |node: &Redis| node.ask(&["DBSIZE"])[1..].parse::<usize>().unwrap();
    let sizes: Vec<_> = nodes.iter().map(size).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 10, "{sizes:?}");
    assert!(
        sizes.iter().filter(|size| **size > 0).count() >= 2,
        "{sizes:?}"
    );
    // One is left of the ten, once the last has been given back.
    wait_until("what was granted in vain is back", || {
        wait(&asks(&mut clients[0], "caller-last")).is_none()
    });
    assert!(wait(&asks(&mut clients[1], "caller-more")).is_some());
}

fn sentinels() {
    let (master, upstream) = (Redis::start(), Upstream::recording());
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    std::fs::write(
        directory.path().join("sentinel.conf"),
        format!(
            "port {port}\nsentinel monitor main 127.0.0.1 {} 1\n",
            master.address.port()
        ),
    )
    .unwrap();
    let sentinel = Redis::start_in(directory, port, &["--sentinel"]);
    let store = format!("{PATIENT}\nsentinel = \"main\"");
    let config = configured(&upstream, &sentinel.url(), &store, &quota("3/day", 3));
    let gateway = Gateway::start(&config);
    connected(&gateway);
    counts(&gateway, "one");
    assert_eq!(master.keys().len(), 1);
}
