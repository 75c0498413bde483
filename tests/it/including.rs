//! A configuration in several files, followed as they change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::call::{Post, call};
use crate::support::gateway::{PRELUDE, dealer};
use crate::support::process::run;
use crate::support::wait::wait_until;
use crate::support::{Gateway, Upstream};

const INCLUDE: &str = "include = [\"conf.d/*.toml\"]\n";

fn endpoint(path: &str) -> String {
    let name = path.trim_start_matches('/');
    format!("[endpoint.{name}]\npath = \"{path}\"\nupstream = \"lakeside\"\n")
}

/// A gateway whose `conf.d` this filled.
fn start(upstream: &Upstream, fill: impl FnOnce(&Path)) -> Gateway {
    let directory = tempfile::tempdir().unwrap();
    let conf = directory.path().join("conf.d");
    fs::create_dir(&conf).unwrap();
    fill(&conf);
    let path = directory.path().join("forecourt.toml");
    fs::write(&path, format!("{INCLUDE}{PRELUDE}{}", dealer(upstream))).unwrap();
    let mut gateway = Gateway::start_at(path);
    gateway.directory = directory;
    gateway
}

fn serves(gateway: &Gateway, path: &str) -> bool {
    gateway.ask(Post::to(path).body(call("1")).bytes()).status == 200
}

#[track_caller]
fn comes(gateway: &Gateway, path: &str, is_served: bool) {
    wait_until(&format!("{path}: {is_served}"), || {
        serves(gateway, path) == is_served
    });
}

fn posted(gateway: &Gateway) -> (u16, String) {
    let request = Post::method("POST", "/reload").field("Host", "127.0.0.1");
    let answer = gateway.admin().ask(request.bytes());
    (answer.status, answer.text())
}

#[test]
fn files_that_come_change_and_go_are_followed() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, |conf| {
        fs::write(conf.join("a.toml"), endpoint("/a")).unwrap();
    });
    let conf = gateway.directory.path().join("conf.d");
    assert!(serves(&gateway, "/a2a") && serves(&gateway, "/a"));
    // Nobody tells.
    fs::write(conf.join("b.toml"), endpoint("/b")).unwrap();
    comes(&gateway, "/b", true);
    fs::write(conf.join("a.toml"), endpoint("/c")).unwrap();
    comes(&gateway, "/c", true);
    assert!(!serves(&gateway, "/a"));
    fs::remove_file(conf.join("a.toml")).unwrap();
    comes(&gateway, "/c", false);
    // An editor's file is none, and by rename it is one.
    fs::write(conf.join(".d.toml.swp"), "half a li").unwrap();
    fs::write(conf.join("d.toml.tmp"), endpoint("/d")).unwrap();
    fs::rename(conf.join("d.toml.tmp"), conf.join("d.toml")).unwrap();
    comes(&gateway, "/d", true);
    assert_eq!(gateway.series("forecourt_config_generation"), 5.0);
    let status = gateway.admin_get("/status").json();
    let included = status["configuration"]["included"].as_array().unwrap();
    let included: Vec<_> = included.iter().map(|it| it.as_str().unwrap()).collect();
    let path = |name| conf.join(name).display().to_string();
    assert_eq!(included, [path("b.toml"), path("d.toml")]);

    // A bad one is refused whole, at its place, and the good ones serve on.
    fs::write(
        conf.join("e.toml"),
        format!("{}{}", endpoint("/e"), endpoint("/b")),
    )
    .unwrap();
    wait_until("it is refused", || posted(&gateway).0 == 422);
    let told = posted(&gateway).1;
    let twice = format!(
        "{}:4:11: endpoint.b: was given before, on line 1 of {}",
        path("e.toml"),
        path("b.toml")
    );
    assert!(told.contains(&twice), "{told}");
    assert!(serves(&gateway, "/b") && !serves(&gateway, "/e"));
    fs::write(conf.join("e.toml"), endpoint("/e")).unwrap();
    assert_eq!(posted(&gateway).0, 200);
    assert!(serves(&gateway, "/e"));
}

#[test]
fn kubernetes_swaps_the_directory_of_what_is_included() {
    let upstream = Upstream::recording();
    let fill = |conf: &Path, version: &str, files: &[&str]| {
        let directory = conf.join(format!("..{version}"));
        fs::create_dir(&directory).unwrap();
        for file in files {
            let text = endpoint(&format!("/{file}-{version}"));
            fs::write(directory.join(format!("{file}.toml")), text).unwrap();
            let link = conf.join(format!("{file}.toml"));
            if link.symlink_metadata().is_err() {
                symlink(format!("..data/{file}.toml"), link).unwrap();
            }
        }
        symlink(format!("..{version}"), conf.join("..tmp")).unwrap();
        fs::rename(conf.join("..tmp"), conf.join("..data")).unwrap();
    };
    let gateway = start(&upstream, |conf| fill(conf, "v1", &["a", "b"]));
    let conf = gateway.directory.path().join("conf.d");
    assert!(serves(&gateway, "/a-v1") && serves(&gateway, "/b-v1"));
    fill(&conf, "v2", &["a", "b"]);
    comes(&gateway, "/a-v2", true);
    assert!(serves(&gateway, "/b-v2") && !serves(&gateway, "/a-v1"));
    fs::remove_dir_all(conf.join("..v1")).unwrap();
    // A key more, and one fewer: the kubelet makes and removes the links.
    fill(&conf, "v3", &["a", "b", "c"]);
    comes(&gateway, "/c-v3", true);
    assert!(serves(&gateway, "/a-v3"));
    fs::remove_dir_all(conf.join("..v2")).unwrap();
    fs::remove_file(conf.join("b.toml")).unwrap();
    fill(&conf, "v4", &["a", "c"]);
    comes(&gateway, "/a-v4", true);
    assert!(serves(&gateway, "/c-v4") && !serves(&gateway, "/b-v3"));
}

#[test]
fn a_directory_that_comes_later_is_seen() {
    let upstream = Upstream::recording();
    let whole = format!("{INCLUDE}{PRELUDE}{}", dealer(&upstream));
    let gateway = Gateway::start_whole(&whole);
    let conf = gateway.directory.path().join("conf.d");
    fs::create_dir(&conf).unwrap();
    fs::write(conf.join("a.toml"), endpoint("/a")).unwrap();
    comes(&gateway, "/a", true);
    fs::write(conf.join("b.toml"), endpoint("/b")).unwrap();
    comes(&gateway, "/b", true);
}

#[test]
fn check_lists_what_was_read() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(at("conf.d")).unwrap();
    let file = at("forecourt.toml");
    fs::write(&file, format!("{INCLUDE}{PRELUDE}{}", dealer(&upstream))).unwrap();
    for name in ["b", "a"] {
        fs::write(
            at(&format!("conf.d/{name}.toml")),
            endpoint(&format!("/{name}")),
        )
        .unwrap();
    }
    let ended = run(&["check", &file]);
    let (a, b) = (at("conf.d/a.toml"), at("conf.d/b.toml"));
    assert_eq!(
        ended.stdout,
        format!("{a}: included\n{b}: included\n{file}: ok\n")
    );
    assert_eq!(ended.code, Some(0));

    fs::write(&b, endpoint("/a")).unwrap();
    let ended = run(&["check", &file, "--format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &told["ok"]), (Some(78), &false.into()));
    assert_eq!(told["included"], serde_json::json!([a, b]));
    assert_eq!(told["problems"][0]["file"], b);
    assert_eq!(told["problems"][0]["path"], "endpoint.a");
    let ended = run(&["check", &file]);
    assert!(
        ended
            .stderr
            .starts_with(&format!("{b}:1:11: endpoint.a: was given before")),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_difference_is_told_of_all_files_together() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, |conf| {
        fs::write(conf.join("a.toml"), endpoint("/a")).unwrap();
    });
    let order = |target: &str, body: &str| {
        let request = Post::method("POST", target).field("Host", "127.0.0.1");
        let answer = gateway.admin().ask(request.body(body).bytes());
        (answer.status, answer.json())
    };
    let whole = fs::read_to_string(gateway.path()).unwrap();
    let (status, told) = order("/diff?as=json", &whole);
    assert_eq!((status, &told["different"]), (200, &false.into()), "{told}");
    let more = format!("{whole}{}", endpoint("/b"));
    let (_, told) = order("/diff?as=json", &more);
    assert_eq!(told["tables"].as_array().unwrap().len(), 1, "{told}");
    // What lies elsewhere is not read for whoever asks.
    let secret = gateway
        .directory
        .path()
        .parent()
        .unwrap()
        .join("secret.toml");
    let reaching = whole.replace("conf.d/*.toml", &secret.display().to_string());
    let (status, told) = order("/diff?as=json", &reaching);
    assert_eq!(status, 422);
    assert_eq!(told["problems"][0]["path"], "include[0]", "{told}");
    let (status, told) = order("/diff?as=json&directory=/", &whole);
    assert_eq!(
        (status, &told["problems"][0]["path"]),
        (422, &"include[0]".into())
    );
    // What a reload would do is told of the files as they lie there.
    fs::write(
        gateway.directory.path().join("conf.d/b.toml"),
        endpoint("/b"),
    )
    .unwrap();
    let (status, told) = order("/reload?dry-run&as=json", "");
    assert!(
        status == 200 && told["tables"].as_array().is_some_and(|it| it.len() <= 1),
        "{told}"
    );
}
