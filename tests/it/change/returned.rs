//! Generations that are kept, and the way back to them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forecourt::state::Rejected;
use forecourt::state::reload::Reloaded;

use super::*;
use crate::support::call::{call, post};
use crate::support::gateway::{NOW, PRELUDE, dealer, dealer_with, two_workers};
use crate::support::process::{Process, run};
use crate::support::tls::{Place, Speaker, secured};
use crate::support::wait::stays;
use crate::support::{Nobody, Upstream, wait_until};

/// The usual dealer at a path.
fn at(upstream: &Upstream, path: &str) -> String {
    dealer(upstream).replace("path = \"/a2a\"", &format!("path = \"{path}\""))
}

fn serves(gateway: &Gateway, path: &str) -> bool {
    let answer = gateway.ask(Post::to(path).body(call("1")).bytes());
    answer.status == 200
}

#[track_caller]
fn apply(gateway: &Gateway, configuration: &str) -> u64 {
    gateway.write(configuration);
    match gateway.inner.reload().unwrap() {
        Reloaded::Applied(generation) | Reloaded::Unchanged(generation) => generation,
        again @ Reloaded::Again { .. } => panic!("{again}"),
    }
}

fn kept(gateway: &Gateway) -> Vec<u64> {
    let all = gateway.admin_get("/generations").json();
    let all = all["generations"].as_array().unwrap().clone();
    all.iter().map(|it| number(&it["generation"])).collect()
}

#[test]
fn the_generation_before_serves_again_under_a_new_number() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&at(&upstream, "/one"));
    let hash_of_one = configuration(&gateway)["hash"].clone();
    assert_eq!(apply(&gateway, &at(&upstream, "/two")), 2);
    let answer = order(&gateway, "/rollback", "");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        "rolled back, generation 3 is 1 again; the file still says something else, and is not read \
         again until it changes or a reload is asked for\n"
    );
    assert!(serves(&gateway, "/one") && !serves(&gateway, "/two"));
    let told = configuration(&gateway);
    assert_eq!(told["generation"], 3);
    assert_eq!(told["hash"], hash_of_one);
    assert_eq!(told["differs_from_file"], true);
    assert_eq!(told["standing"], "set_aside");
    assert_eq!(told["last_reload"]["order"], "rollback");
    assert_eq!(told["last_reload"]["result"], "rolled_back");
    assert_eq!(told["last_reload"]["of"], 1);
    assert_eq!(rollbacks(&gateway, "asked"), 1.0);
    assert_eq!(rollbacks(&gateway, "guard"), 0.0);
    assert_eq!(gateway.series("forecourt_config_generation"), 3.0);
    // Nor does anybody read the file meanwhile.
    let is_set_aside = || configuration(&gateway)["generation"] == 3;
    assert!(stays(Duration::from_millis(600), is_set_aside));
    // There and back.
    let answer = order(&gateway, "/rollback?as=json", "");
    let told = answer.json();
    assert_eq!(
        (&told["result"], &told["generation"]),
        (&"rolled_back".into(), &4.into())
    );
    assert_eq!(told["of"], 2);
    assert!(serves(&gateway, "/two"));
    // Whoever asks for the file gets it: it says what serves.
    assert_eq!(gateway.inner.reload().unwrap(), Reloaded::Unchanged(4));
    assert_eq!(configuration(&gateway)["differs_from_file"], false);
}

#[test]
fn the_file_is_taken_again_when_it_is_asked_for_or_changes() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&at(&upstream, "/one"));
    apply(&gateway, &at(&upstream, "/two"));
    order(&gateway, "/rollback", "");
    assert!(serves(&gateway, "/one"));
    let answer = order(&gateway, "/reload", "");
    assert_eq!(answer.text(), "applied, generation 4\n");
    assert!(serves(&gateway, "/two"));
    order(&gateway, "/rollback", "");
    assert!(serves(&gateway, "/one"));
    // A change is taken by the watch, without a word.
    gateway.write(&at(&upstream, "/three"));
    wait_until("the change is taken", || serves(&gateway, "/three"));
    assert_eq!(configuration(&gateway)["differs_from_file"], false);
}

#[test]
fn as_many_are_kept_as_the_configuration_says() {
    let upstream = Upstream::recording();
    let keep =
        |keep: usize, path: &str| format!("[reload]\nkeep = {keep}\n{}", at(&upstream, path));
    let gateway = Gateway::start(&keep(3, "/1"));
    for round in 2..=5 {
        assert_eq!(apply(&gateway, &keep(3, &format!("/{round}"))), round);
    }
    assert_eq!(kept(&gateway), [5, 4, 3]);
    assert_eq!(
        configuration(&gateway)["kept"],
        serde_json::json!([5, 4, 3])
    );
    let answer = order(&gateway, "/rollback?generation=2", "");
    assert_eq!(answer.status, 404);
    assert_eq!(answer.text(), "generation 2 is not kept; kept: 3, 4, 5\n");
    let answer = order(&gateway, "/rollback?generation=3", "");
    assert_eq!(answer.status, 200);
    assert!(serves(&gateway, "/3"));
    assert_eq!(kept(&gateway), [6, 5, 4]);
    // Itself: nothing to do.
    let answer = order(&gateway, "/rollback?generation=6", "");
    assert_eq!(answer.text(), "unchanged, generation 6\n");
    assert_eq!(configuration(&gateway)["standing"], "set_aside");
    // One is enough for whoever does not go back.
    apply(&gateway, &keep(1, "/7"));
    assert_eq!(kept(&gateway), [7]);
    let answer = order(&gateway, "/rollback", "");
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.text(),
        "no generation before the one that serves is kept; kept: 7\n"
    );
    assert_eq!(rollbacks(&gateway, "asked"), 1.0);
    assert_eq!(configuration(&gateway)["standing"], "served");
}

#[test]
fn generations_tell_where_they_come_from_and_what_they_say() {
    let upstream = Upstream::recording();
    let secret = "headers = { authorization = \"Bearer ${DEALER_TOKEN}\" }";
    let gateway = Gateway::start(&dealer_with(&upstream, secret, ""));
    apply(&gateway, &at(&upstream, "/two"));
    order(&gateway, "/rollback", "");
    let all = gateway.admin_get("/generations").json();
    assert_eq!(all["keep"], 10);
    let hows: Vec<_> = all["generations"].as_array().unwrap().iter().collect();
    let of: Vec<_> = hows.iter().map(|it| (&it["how"], &it["of"])).collect();
    let null = Value::Null;
    assert_eq!(
        of,
        [
            (&"rollback".into(), &1.into()),
            (&"file".into(), &null),
            (&"start".into(), &null)
        ]
    );
    assert_eq!(hows[0]["hash"], hows[2]["hash"]);
    assert_ne!(hows[0]["hash"], hows[1]["hash"]);
    assert_eq!(hows[0]["at"], NOW);
    let one = gateway.admin_get("/generations?generation=2");
    assert_eq!(
        one.json()["configuration"]["endpoint"]["lakeside"]["path"],
        "/two"
    );
    let one = gateway.admin_get("/generations?generation=1");
    assert!(!one.text().contains("dealer-secret"), "{}", one.text());
    assert_eq!(gateway.admin_get("/generations?generation=9").status, 404);
}

#[test]
fn whoever_misspells_changes_nothing() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&at(&upstream, "/one"));
    apply(&gateway, &at(&upstream, "/two"));
    gateway.write(&at(&upstream, "/three"));
    for target in [
        "/reload?dryrun",
        "/reload?dry_run",
        "/reload?dry-run=no",
        "/reload?as=xml",
        "/rollback?generations=1",
        "/rollback?generation=one",
        "/rollback?generation=-1",
        "/rollback?generation=%2B1",
        "/rollback?generation=99999999999999999999",
        "/rollback?generation=",
        "/rollback?generation=1&generation=1",
        "/generations?x",
        "/diff?format=yaml",
        "/diff?directory=relative",
    ] {
        let answer = match target.starts_with("/generations") {
            true => gateway.admin_get(target),
            false => order(&gateway, target, ""),
        };
        assert_eq!(answer.status, 400, "{target}: {}", answer.text());
        assert!(answer.text().len() < 200);
    }
    assert_eq!(rollbacks(&gateway, "asked"), 0.0);
}

#[test]
fn what_cannot_be_served_any_more_is_refused_and_certificates_go_on_being_followed() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let first = place.issue("first", &["gw.example"]);
    place.issue("second", &["gw.example"]);
    let rest = dealer(&upstream);
    let gateway = Gateway::start_whole(&secured(&place.pair("first"), &rest));
    gateway.write_whole(&secured(&place.pair("second"), &rest));
    gateway.inner.reload().unwrap();
    let speaker = Speaker::trusting(&place.authority);
    let shown = || speaker.connect(gateway.address(), "gw.example").shown();
    let pem = place.directory.path().join("first.pem");
    fs::rename(&pem, pem.with_extension("away")).unwrap();
    let answer = order(&gateway, "/rollback", "");
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("first.pem"), "{}", answer.text());
    let told = configuration(&gateway);
    assert_eq!(told["generation"], 2);
    assert_eq!(told["standing"], "served");
    assert_eq!(told["history"][0]["order"], "rollback");
    assert_eq!(told["history"][0]["result"], "rejected");
    fs::rename(pem.with_extension("away"), &pem).unwrap();
    assert_eq!(order(&gateway, "/rollback", "").status, 200);
    assert_eq!(shown(), first.der());
    // The next certificate in that file comes into force; the configuration file does not.
    let next = place.issue("first", &["gw.example"]);
    let answer = order(&gateway, "/reload?dry-run&as=json", "").json();
    assert_eq!(answer["generation"], 3);
    wait_until("the next certificate", || shown() == next.der());
    let told = configuration(&gateway);
    assert_eq!(
        (&told["generation"], &told["standing"]),
        (&3.into(), &"set_aside".into())
    );
}

#[test]
fn the_status_remembers_what_was_applied_and_rejected() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&at(&upstream, "/0"));
    for round in 1..=30 {
        match round % 3 {
            0 => {
                gateway.write(&at(&upstream, &format!("{round}")));
                assert!(matches!(gateway.inner.reload(), Err(Rejected::Problems(_))));
            }
            1 => {
                apply(&gateway, &at(&upstream, &format!("/{round}")));
            }
            _ => {
                assert!(matches!(gateway.inner.reload(), Ok(Reloaded::Unchanged(_))));
            }
        }
    }
    let told = configuration(&gateway);
    let history = told["history"].as_array().unwrap();
    assert!(history.len() == 20, "{}", history.len());
    let results: Vec<_> = history
        .iter()
        .map(|it| it["result"].as_str().unwrap())
        .collect();
    // The watch may have seen some first; nothing that changed nothing is among them.
    assert_eq!(results[..2], ["rejected", "applied"]);
    assert!(!results.contains(&"unchanged"));
    let problems = history[0]["problems"].as_array().unwrap();
    assert_eq!(problems[0]["path"], "endpoint.lakeside.path");
    assert_eq!(told["standing"], "rejected");
    assert_eq!(told["differs_from_file"], true);
}

#[test]
fn the_series_of_what_serves_is_the_only_one() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&at(&upstream, "/one"));
    apply(&gateway, &at(&upstream, "/two"));
    order(&gateway, "/rollback", "");
    let told = configuration(&gateway);
    let hash = told["hash"].as_str().unwrap();
    let metrics = gateway.metrics();
    let series: Vec<_> = metrics
        .iter()
        .filter(|(name, _)| name.starts_with("forecourt_config_info"))
        .collect();
    let wanted = format!("forecourt_config_info{{generation=\"3\",hash=\"{hash}\"}}");
    assert_eq!(series, [(&wanted, &1.0)]);
}

#[test]
fn reloads_rollbacks_dry_runs_the_watch_and_the_guard_are_one_after_the_other() {
    const EACH: usize = 50;
    let (upstream, nobody) = (Upstream::recording(), Nobody::new());
    // Every second one makes calls fail; the guard acts as soon as it has seen one.
    let file = |round: usize| {
        let down = if round.is_multiple_of(2) {
            upstream.address
        } else {
            nobody.address
        };
        two_workers(&format!(
            "[reload.rollback_on_errors]\nwindow = \"1h\"\nratio = \"1%\"\nmin_requests = 1\n\
             {}[endpoint.a]\npath = \"/{round}\"\nupstream = \"lakeside\"\n\
             [endpoint.down]\npath = \"/down\"\nupstream = \"down\"\n\
             [upstream.down]\nurl = \"http://{down}\"\n",
            dealer(&upstream)
        ))
    };
    let gateway = Gateway::start_whole(&file(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let gateway = &gateway;
        let (done, file) = (&done, &file);
        let served = scope.spawn(move || {
            let mut client = gateway.client();
            let mut count = 0;
            while !done.load(Ordering::SeqCst) {
                let down = client.ask(Post::to("/down").body(call("1")).bytes());
                if down.closes() {
                    client = gateway.client();
                }
                assert_eq!(client.ask(post(call("1"))).status, 200);
                count += 1;
            }
            count
        });
        let workers = [
            scope.spawn(move || {
                for round in 0..EACH {
                    gateway.write_whole(&file(round));
                    let answer = order(gateway, "/reload", "");
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            }),
            scope.spawn(move || {
                for _ in 0..EACH {
                    let answer = order(gateway, "/rollback", "");
                    assert!([200, 404].contains(&answer.status), "{}", answer.text());
                }
            }),
            scope.spawn(move || {
                for round in 0..EACH {
                    let answer = order(gateway, "/reload?dry-run", "");
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    assert_eq!(order(gateway, "/diff", &file(round)).status, 200);
                }
            }),
            scope.spawn(move || {
                for _ in 0..EACH {
                    // Newest first, without a gap, and what serves is among them.
                    let kept = kept(gateway);
                    assert!(kept.windows(2).all(|it| it[0] == it[1] + 1), "{kept:?}");
                    assert!(kept.len() <= 10);
                    gateway.inner.reload().unwrap();
                }
            }),
        ];
        let ended = workers.map(thread::ScopedJoinHandle::join);
        // Also where one failed: else nobody would ever hear of it.
        done.store(true, Ordering::SeqCst);
        for worker in ended {
            worker.unwrap();
        }
        assert!(served.join().unwrap() > 0);
    });
    let told = configuration(&gateway);
    assert_eq!(number(&told["kept"][0]), number(&told["generation"]));
    let applied = number(&told["generation"]) - 1;
    assert!(applied >= EACH as u64 / 2, "{applied}");
    // The guard still does what it is for.
    let guarded = rollbacks(&gateway, "guard");
    let down = || gateway.ask(Post::to("/down").body(call("1")).bytes());
    gateway.write_whole(&file(2 * EACH));
    gateway.inner.reload().unwrap();
    // Its thread has looked at that one when it answers again: what failed before is no measure any more.
    assert_eq!(gateway.admin_get("/livez").status, 200);
    gateway.write_whole(&file(2 * EACH + 1));
    gateway.inner.reload().unwrap();
    wait_until("it goes back", || {
        down();
        rollbacks(&gateway, "guard") > guarded
    });
    assert!(serves(&gateway, &format!("/{}", 2 * EACH)));
    // Whatever the order was: the file asked for last serves.
    gateway.write_whole(&two_workers(&at(&upstream, "/last")));
    assert!(gateway.inner.reload().is_ok());
    assert!(serves(&gateway, "/last"));
}

#[test]
fn the_command_goes_back_and_says_so() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecourt.toml");
    let file = |path: &str| format!("{PRELUDE}{}", at(&upstream, path));
    fs::write(&path, file("/one")).unwrap();
    let mut process = Process::start(&path);
    let (_, admin) = process.addresses();
    let admin = format!("http://{admin}");
    let loaded = |process: &mut Process, message: &str| process.says(message);
    fs::write(&path, file("/two")).unwrap();
    let ended = run(&["reload", "--admin", &admin]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let line = loaded(&mut process, "configuration applied");
    assert_eq!(line["generation"], 2);
    assert!(line["hash"].as_str().unwrap().starts_with("sha256:"));
    let ended = run(&["rollback", "--admin", &admin]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert!(
        ended
            .stdout
            .starts_with("rolled back, generation 3 is 1 again; the file still")
    );
    let line = loaded(&mut process, "configuration rolled back");
    assert_eq!((&line["generation"], &line["of"]), (&3.into(), &1.into()));
    assert_eq!(line["level"], "WARN");
    assert!(line["note"].as_str().unwrap().contains("not read again"));
    let ended = run(&[
        "rollback", "--to", "2", "--format", "json", "--admin", &admin,
    ]);
    assert_eq!(ended.code, Some(0));
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&told["generation"], &told["of"]), (&4.into(), &2.into()));
    let ended = run(&["rollback", "--to", "99", "--admin", &admin]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "generation 99 is not kept; kept: 1, 2, 3, 4\n"
    );
    assert_eq!(run(&["rollback", "--to", "x"]).code, Some(2));
}
