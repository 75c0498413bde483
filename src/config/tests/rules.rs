//! What settings come out: defaults, references, overrides, places.

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use crate::protocol::{Absence, Dialect, HttpStatus, Step};

fn fixture(name: &str) -> Settings {
    let path = repository("tests/fixtures/config/good").join(name);
    load(&path, &env).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let settings = fixture("minimal.toml");
    assert_eq!(settings.runtime.workers, None);
    assert_eq!(settings.admin.address, "127.0.0.1:9901".parse().unwrap());
    assert_eq!(
        settings.limits,
        Limits {
            body: 1 << 20,
            header_bytes: 32 << 10,
            header_count: 100,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            connections: 10_000,
            concurrent_streams: 100,
            in_flight_requests: 100_000,
            in_flight_bytes: 256 << 20,
            limiter_keys: 1 << 20,
        }
    );
    assert_eq!(settings.log.access, AccessLog::Stdout);
    assert_eq!(settings.log.format, LogFormat::Json);
    assert_eq!(settings.log.level, Level::Info);
    assert_eq!(settings.shutdown.delay, Duration::ZERO);
    assert_eq!(settings.shutdown.timeout, Duration::from_secs(25));
    assert_eq!(settings.callers.identify, [Identify::Address]);
    let upstream = &settings.upstreams[0];
    assert_eq!(upstream.connect_timeout, Duration::from_secs(2));
    assert_eq!(upstream.response_timeout, Duration::from_secs(120));
    assert_eq!(upstream.idle_timeout, Duration::from_secs(300));
    assert_eq!(upstream.keep_alive, Duration::from_secs(4));
    assert_eq!(
        (upstream.max_connections, upstream.max_waiting),
        (1024, 1024)
    );
    assert!(!upstream.preserve_host && upstream.headers.is_empty());
    let endpoint = &settings.endpoints[0];
    assert_eq!(endpoint.host, Host::Any);
    assert_eq!(&*endpoint.contracts[0].contract.name, "aap/3.0");
    assert_eq!(endpoint.http_status, HttpStatus::Split);
    assert_eq!(endpoint.methods, None);
    assert!(settings.warnings.is_empty());
}

#[test]
fn a_plan_changes_what_it_names_and_nothing_else() {
    let settings = fixture("plans.toml");
    let [buyer, leads, streams, house] = &settings.quotas[..] else {
        panic!("{:?}", settings.quotas)
    };
    let rate = |millis, burst| Allowance::Rate {
        interval: Duration::from_millis(millis),
        burst: NonZeroU32::new(burst).unwrap(),
    };
    let concurrent = |most| Allowance::Concurrent(NonZeroU32::new(most).unwrap());
    assert_eq!(buyer.allowance, rate(1000, 60));
    assert!(buyer.is_for_every_call() && !leads.is_for_every_call());
    assert_eq!(leads.cost.len(), 2);
    assert_eq!(
        leads.cost[0],
        ("lead.submit".into(), NonZeroU32::new(10).unwrap())
    );
    assert_eq!(streams.allowance, concurrent(4));
    assert_eq!(house.skills.as_deref(), Some(&["house.inspect".into()][..]));
    let plans: Vec<_> = settings
        .plans
        .iter()
        .map(|plan| (&*plan.name, plan.quotas.as_slice()))
        .collect();
    assert_eq!(
        plans,
        [
            ("gold", &[(0, rate(100, 100)), (2, concurrent(40))][..]),
            ("patient", &[(0, rate(1000, 600))]),
            ("quick", &[(0, rate(100, 10)), (1, rate(600, 500))]),
            ("plain", &[]),
        ]
    );
}

#[test]
fn the_design_loads() {
    let settings = fixture("design-both.toml");
    let tls = settings.listeners[1].tls.as_ref().unwrap();
    let directory = repository("tests/fixtures/config/good");
    assert_eq!(tls.default.certificate.path, directory.join("cert.pem"));
    assert_eq!(tls.default.key.path, directory.join("key.pem"));
    assert!(tls.others.is_empty() && tls.clients.is_none());
    let secure = settings.upstreams[1].tls.as_ref().unwrap();
    assert_eq!(
        (&*secure.server_name, &secure.ca),
        ("agent.internal", &None)
    );
    assert!(secure.client.is_none() && settings.upstreams[0].tls.is_none());
    assert_eq!(settings.runtime.workers.unwrap().get(), 2);
    assert_eq!(settings.callers.identify.len(), 3);
    let quota = &settings.quotas[0];
    assert!(quota.per.contains(Dimension::Caller) && !quota.shared);
    assert_eq!(
        (
            quota.allowance.rate().unwrap(),
            quota.allowance.burst().unwrap().get()
        ),
        ("1/s".to_owned(), 20)
    );
    let both = &settings.endpoints[1];
    let pins: Vec<_> = both
        .contracts
        .iter()
        .map(|pin| (&*pin.contract.name, pin.upstream))
        .collect();
    assert_eq!(pins, [("aap/1.2", 1), ("aap/3.0", 0)]);
    let special = &settings.endpoints[2];
    assert!(special.contracts[0].contract.require_extension);
    assert_eq!(special.http_status, HttpStatus::Mapped);
    assert!(special.report.contains(Step::Version) && special.report.contains(Step::Extension));
    assert_eq!(
        settings.upstreams[1].headers[0].1.expose(),
        "Bearer s3cret-token"
    );
}

#[test]
fn tls_has_files_names_and_demands() {
    let settings = fixture("tls.toml");
    let directory = repository("tests/fixtures/config/good");
    let tls = |at: usize| settings.listeners[at].tls.as_ref().unwrap();
    let files: Vec<_> = tls(0).certificates().map(|it| &*it.key.path).collect();
    let expected = [
        PathBuf::from("/etc/tls/key.pem"),
        directory.join("a.key"),
        directory.join("b.key"),
    ];
    assert_eq!(files, expected);
    let demands = |at: usize| tls(at).clients.as_ref().unwrap().is_required;
    assert_eq!((demands(0), demands(1)), (false, true));
    let secure = |at: usize| settings.upstreams[at].tls.as_ref().unwrap();
    let names = [0, 1, 2].map(|at| &*secure(at).server_name);
    assert_eq!(names, ["agent.internal", "2001:db8::2", "agent.internal"]);
    assert_eq!(
        secure(0).ca.as_ref().unwrap().path,
        directory.join("ca.pem")
    );
    assert!(secure(0).client.is_some() && secure(1).ca.is_none());
}

#[test]
fn which_certificates_can_change_live() {
    let text = fs::read_to_string(repository("tests/fixtures/config/good/tls.toml")).unwrap();
    let one = toml(&text).unwrap();
    let changed = |from: &str, to: &str| {
        let next = text.replace(from, to);
        assert_ne!(next, text);
        toml(&next).unwrap()
    };
    for (from, to) in [
        ("a.pem", "other.pem"),
        ("\"optional\"", "\"required\""),
        ("clients.pem", "other.pem"),
        ("own.key", "other.key"),
    ] {
        let next = changed(from, to);
        assert_eq!(one.restart_needed(&next), [""; 0], "{from}");
        assert!(!one.serves_like(&next), "{from}");
    }
    let clear = changed("\ntls     = {", "\n# tls = {");
    assert_eq!(one.restart_needed(&clear), [""; 0]);
    assert!(!one.serves_like(&clear));
    // Where something stands is nothing that serves otherwise.
    assert!(one.serves_like(&toml(&format!("# more\n{text}")).unwrap()));
}

#[test]
fn json_means_the_same_as_toml() {
    for name in ["design-first", "design-both"] {
        let mut toml = fixture(&format!("{name}.toml"));
        let mut json = fixture(&format!("{name}.json"));
        assert_eq!(toml.warnings.len(), json.warnings.len());
        for settings in [&mut toml, &mut json] {
            settings.warnings = Problems::default();
        }
        assert_eq!(toml, json, "{name}");
    }
}

#[test]
fn own_contracts_take_what_they_leave_out_from_the_newest_release() {
    let settings = fixture("contracts.toml");
    let contract =
        |endpoint: usize, at: usize| &settings.endpoints[endpoint].contracts[at].contract;
    let house = contract(0, 0);
    assert_eq!(house.a2a_version.as_str(), "1.1");
    assert_eq!(
        (house.absent, house.require_extension),
        (Absence::Refuse, false)
    );
    assert_eq!(house.dialect, Dialect::Bare);
    let draft = contract(1, 0);
    assert_eq!(
        draft.extension.as_str(),
        "https://dealer.example/ext/aap/v2.0"
    );
    assert_eq!((&*draft.name, draft.dialect), ("aap/2.0", Dialect::Tagged));
    let spare = contract(2, 1);
    assert_eq!(spare.a2a_version.as_str(), "1.0");
    assert_eq!(
        (spare.absent, spare.require_extension),
        (Absence::Infer, true)
    );
    assert_eq!(spare.dialect, Dialect::Wrapped);
    assert_eq!(contract(3, 0).absent, Absence::Refuse);
}

#[test]
fn hosts_and_paths_have_one_spelling() {
    let settings = fixture("hosts.toml");
    let places: Vec<_> = settings
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.host.to_string(), &*endpoint.path))
        .collect();
    let expected = [
        ("any host", "/"),
        ("dealer.example.com", "/"),
        ("*.example.com", "/a2a"),
        ("[2001:db8::1]", "/caf%C3%A9/a;b=c"),
        ("xn--mnchen-3ya.example", "/a2a"),
    ];
    assert_eq!(places, expected.map(|(host, path)| (host.to_owned(), path)));
}

#[test]
fn variables_stand_in_strings_only_and_are_expanded_once() {
    let settings = fixture("variables.toml");
    assert_eq!(settings.runtime.workers.unwrap().get(), 4);
    assert_eq!(settings.listeners[0].address.port(), 8080);
    let upstream = &settings.upstreams[0];
    assert_eq!(&*upstream.url.host, "10.0.0.7");
    assert!(upstream.preserve_host);
    assert_eq!(upstream.headers[1].1.expose(), "${DEALER_TOKEN} costs $5");
    assert_eq!(&*settings.endpoints[0].path, "/a2a");
}

#[test]
fn secrets_are_never_shown() {
    let settings = fixture("variables.toml");
    let shown = format!("{settings:?} {}", settings.upstreams[0].headers[0].1);
    assert!(
        shown.contains("***") && !shown.contains("s3cret"),
        "{shown}"
    );
}

#[test]
fn an_upstream_url_is_taken_apart_and_put_together() {
    let urls = [
        (
            "http://agent",
            ("agent", 80, "agent", "", false),
            ["/", "/x"],
        ),
        (
            "http://agent/",
            ("agent", 80, "agent", "", true),
            ["/", "/x"],
        ),
        (
            "https://Agent.example/a2a",
            ("agent.example", 443, "agent.example", "/a2a", false),
            ["/a2a", "/a2a/x"],
        ),
        (
            "HTTP://10.0.0.1:9001/a2a/",
            ("10.0.0.1", 9001, "10.0.0.1:9001", "/a2a", true),
            ["/a2a/", "/a2a/x"],
        ),
        (
            "http://[2001:DB8::1]:80/",
            ("2001:db8::1", 80, "[2001:db8::1]:80", "", true),
            ["/", "/x"],
        ),
    ];
    for (text, (host, port, authority, path, trailing_slash), targets) in urls {
        let Ok(url) = <UpstreamUrl as read::FromText>::from_text(text) else {
            panic!("{text}");
        };
        assert_eq!((&*url.host, url.port), (host, port), "{text}");
        assert_eq!((&*url.authority, &*url.path), (authority, path), "{text}");
        assert_eq!(url.trailing_slash, trailing_slash, "{text}");
        assert_eq!([url.target(""), url.target("/x")], targets, "{text}");
    }
}

#[test]
fn what_needs_a_restart_is_named() {
    let one = fixture("minimal.toml");
    let text = fs::read_to_string(repository("tests/fixtures/config/good/minimal.toml")).unwrap();
    let changed = |from: &str, to: &str| toml(&text.replace(from, to)).unwrap();
    assert!(one.restart_needed(&changed("9001", "9002")).is_empty());
    assert!(one.restart_needed(&changed("8080", "8081")).is_empty());
    let all = format!(
        "[runtime]\nworkers = 1\n[admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"off\"\n\
         access_format = \"combined\"\naccess_ok_sample = \"5%\"\nlevel = \"debug\"\nformat = \"text\"\n\
         [limits]\nbody = \"2MiB\"\nlimiter_keys = 7\n{text}"
    );
    let all = toml(&all).unwrap();
    assert_eq!(
        one.restart_needed(&all),
        [
            "runtime",
            "admin.address",
            "log.format",
            "limits.limiter_keys"
        ]
    );
}

#[test]
fn a_relative_path_starts_at_the_file() {
    let text = fs::read_to_string(repository("config/minimal.toml")).unwrap();
    let text = format!("{text}\n[log]\naccess = \"logs/access.log\"\n");
    for (origin, path) in [
        (
            "/etc/forecourt/forecourt.toml",
            "/etc/forecourt/logs/access.log",
        ),
        ("forecourt.toml", "logs/access.log"),
    ] {
        let settings = parse(&text, Format::Toml, Path::new(origin), &env).unwrap();
        assert_eq!(settings.log.access, AccessLog::File(path.into()));
    }
}

#[test]
fn what_cannot_be_read_is_a_problem_with_its_cause() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let latin = file("latin.toml", b"[limits]\n# caf\xe9\n");
    let large = file("large.toml", &vec![b'#'; LARGEST + 1]);
    for (path, cause) in [
        (directory.path().join("missing.toml"), "No such file"),
        (directory.path().to_owned(), "cannot be read: "),
        (latin, "not UTF-8 on line 2"),
        (large, "larger than 4 MiB"),
    ] {
        let problems = load(&path, &env).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems.to_string().contains(cause), "{problems}");
    }
}

#[test]
fn a_flood_of_problems_is_counted_and_cut() {
    let keys: String = (0..2000).map(|at| format!("key_{at} = 1\n")).collect();
    let problems = toml(&keys).unwrap_err();
    assert_eq!(problems.len(), 501);
    assert!(problems.to_string().ends_with("and 1502 more problems"));
}

#[test]
fn problems_can_be_read_by_programs() {
    let problems = toml("[limits]\nbody = 1\n").unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    let last = &json[2];
    assert_eq!(last["severity"], "error");
    assert_eq!((&last["line"], &last["column"]), (&2.into(), &8.into()));
    assert_eq!(last["path"], "limits.body");
}

#[test]
fn percentages_are_exact_and_spelled_back() {
    use crate::config::amount::{Percent, spell_percent};
    use crate::config::read::FromText;
    for (text, millionths, spelled) in [
        ("0%", 0, "0%"),
        ("5%", 50_000, "5%"),
        ("0.5%", 5_000, "0.5%"),
        ("0.0001%", 1, "0.0001%"),
        ("12.3400%", 123_400, "12.34%"),
        ("100%", 1_000_000, "100%"),
        ("100.0%", 1_000_000, "100%"),
    ] {
        assert_eq!(
            Percent::from_text(text).ok(),
            Some(Percent(millionths)),
            "{text}"
        );
        assert_eq!(spell_percent(millionths), spelled);
    }
    for text in [
        "",
        "%",
        "5",
        "0.05",
        "5 %",
        "-5%",
        "+5%",
        "5.%",
        ".5%",
        "5.5.5%",
        "5%%",
        "0.00001%",
        "100.0001%",
        "101%",
        "99999999999%",
        "５%",
        "5e1%",
    ] {
        assert!(Percent::from_text(text).is_err(), "{text}");
    }
}
