//! The configuration file changed in all the ways that editors, scripts and Kubernetes change it,
//! with nobody telling the gateway.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::call::{Post, call};
use crate::support::gateway::{PRELUDE, dealer_with};
use crate::support::process::Process;
use crate::support::wait::{elapse, stays, wait_until};
use crate::support::{Client, Gateway, Upstream};

/// A configuration whose endpoint is at `/v` and this number.
fn version(upstream: &Upstream, number: usize) -> String {
    let endpoint = dealer_with(upstream, "keep_alive = \"100ms\"", "")
        .replace("path = \"/a2a\"", &format!("path = \"/v{number}\""));
    format!("{PRELUDE}{endpoint}")
}

fn serves(gateway: &Gateway, number: usize) -> bool {
    let post = Post::to(&format!("/v{number}")).body(call("1"));
    gateway.ask(post.bytes()).status == 200
}

#[track_caller]
fn comes_to_serve(gateway: &Gateway, number: usize) {
    wait_until(&format!("/v{number} is served"), || serves(gateway, number));
}

fn generation(gateway: &Gateway) -> f64 {
    gateway.series("forecourt_config_generation")
}

fn failures(gateway: &Gateway) -> f64 {
    gateway.series("forecourt_config_reloads_total{result=\"failure\"}")
}

/// Puts a symbolic link in place of whatever is there, at once.
fn relink(target: &Path, link: &Path) {
    let next = link.with_file_name("next");
    symlink(target, &next).unwrap();
    fs::rename(&next, link).unwrap();
}

/// As the kubelet mounts a ConfigMap: the name leads to `..data`, which leads to a directory of
/// this version.
struct Mount {
    root: PathBuf,
}

impl Mount {
    fn new(root: PathBuf, text: &str) -> Self {
        let mount = Self { root };
        fs::create_dir_all(&mount.root).unwrap();
        mount.swap("v0", text);
        symlink("..data/forecourt.toml", mount.file()).unwrap();
        mount
    }

    fn file(&self) -> PathBuf {
        self.root.join("forecourt.toml")
    }

    fn swap(&self, name: &str, text: &str) {
        let directory = self.root.join(format!("..{name}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("forecourt.toml"), text).unwrap();
        relink(Path::new(&format!("..{name}")), &self.root.join("..data"));
    }

    fn remove(&self, name: &str) {
        fs::remove_dir_all(self.root.join(format!("..{name}"))).unwrap();
    }
}

#[test]
fn every_way_of_writing_takes_effect_every_time() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&version(&upstream, 0));
    let path = gateway.path();
    let ways: [&dyn Fn(&str); 4] = [
        &|text| fs::write(&path, text).unwrap(),
        &|text| gateway.write_whole(text),
        &|text| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
        },
        // Gone for long enough that its absence was looked at and counted.
        &|text| {
            let before = failures(&gateway);
            fs::remove_file(&path).unwrap();
            wait_until("counted", || failures(&gateway) > before);
            fs::write(&path, text).unwrap();
        },
    ];
    let mut number = 0;
    for _ in 0..3 {
        for way in ways {
            number += 1;
            way(&version(&upstream, number));
            comes_to_serve(&gateway, number);
            assert!(!serves(&gateway, number - 1));
        }
    }
    assert_eq!(generation(&gateway), (number + 1) as f64);
    assert_eq!(failures(&gateway), 3.0);
}

#[test]
fn kubernetes_swaps_with_the_old_directory_kept_and_removed() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let mount = Mount::new(directory.path().join("etc"), &version(&upstream, 0));
    let gateway = Gateway::start_at(mount.file());
    comes_to_serve(&gateway, 0);
    for number in 1..=6 {
        mount.swap(&format!("v{number}"), &version(&upstream, number));
        if number % 2 == 0 {
            mount.remove(&format!("v{}", number - 1));
        }
        comes_to_serve(&gateway, number);
    }
    assert_eq!((generation(&gateway), failures(&gateway)), (7.0, 0.0));
}

#[test]
fn half_a_file_that_could_be_a_whole_one_never_serves() {
    let upstream = Upstream::recording();
    let whole = format!(
        "{}[endpoint.second]\npath = \"/second\"\nupstream = \"lakeside\"\n",
        version(&upstream, 1)
    );
    let gateway = Gateway::start_whole(&whole);
    let half = version(&upstream, 1);
    assert!(whole.starts_with(&half));
    let post = || {
        gateway
            .ask(Post::to("/second").body(call("1")).bytes())
            .status
    };
    assert_eq!(post(), 200);
    for round in 0..3 {
        // The first half lies there for less than two looks are apart.
        fs::write(gateway.path(), &half).unwrap();
        assert!(stays(Duration::from_millis(100), || post() == 200));
        let changed = whole.replace("/v1", &format!("/round{round}"));
        fs::write(gateway.path(), &changed).unwrap();
        wait_until("the whole file", || {
            assert_eq!(post(), 200, "half a file went live");
            generation(&gateway) == f64::from(round + 2)
        });
    }
    assert_eq!(failures(&gateway), 0.0);
}

#[test]
fn what_cannot_be_served_leaves_what_serves_and_is_counted() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&version(&upstream, 0));
    let path = gateway.path();
    let empty: &dyn Fn() = &|| fs::write(&path, "").unwrap();
    let truncated: &dyn Fn() = &|| fs::write(&path, "[listener.public]\naddr").unwrap();
    let not_text: &dyn Fn() = &|| fs::write(&path, [0xff, 0xfe]).unwrap();
    // Nobody, not even the superuser, can read a directory as a file.
    let unreadable: &dyn Fn() = &|| {
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    };
    for (count, spoil) in [empty, truncated, not_text, unreadable]
        .into_iter()
        .enumerate()
    {
        spoil();
        wait_until("counted", || failures(&gateway) == (count + 1) as f64);
        assert!(serves(&gateway, 0));
        assert_eq!(gateway.admin_get("/readyz").status, 200);
    }
    assert_eq!(generation(&gateway), 1.0);
    fs::remove_dir(&path).unwrap();
    fs::write(&path, version(&upstream, 1)).unwrap();
    comes_to_serve(&gateway, 1);
}

#[test]
fn twenty_swaps_in_a_second_end_in_the_last() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&version(&upstream, 0));
    for number in 1..=20 {
        gateway.write_whole(&version(&upstream, number));
        elapse(Duration::from_millis(50));
    }
    comes_to_serve(&gateway, 20);
    assert!(stays(Duration::from_millis(600), || serves(&gateway, 20)));
    assert_eq!(failures(&gateway), 0.0);
}

/// What a process holds open: descriptors, and watches of all its inotify descriptors.
fn held(process: &Process) -> (usize, usize) {
    let root = PathBuf::from(format!("/proc/{}", process.id()));
    let descriptors = fs::read_dir(root.join("fd")).unwrap().count();
    let watches = fs::read_dir(root.join("fdinfo"))
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
        .map(|info| {
            info.lines()
                .filter(|line| line.starts_with("inotify "))
                .count()
        })
        .sum();
    (descriptors, watches)
}

#[test]
fn two_hundred_swaps_leak_no_watch_and_no_descriptor() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let mount = Mount::new(directory.path().join("etc"), &version(&upstream, 0));
    let mut process = Process::start(&mount.file());
    let (listener, _) = process.addresses();
    let serves = |number: usize| {
        let post = Post::to(&format!("/v{number}")).field("Connection", "close");
        let post = post.body(call("1"));
        Client::connect(listener).ask(post.bytes()).status == 200
    };
    // One swap first, so that whatever is opened once is open.
    mount.swap("v1", &version(&upstream, 1));
    wait_until("the first swap", || serves(1));
    let idle_upstream_closed = |number| {
        wait_until("quiet", || upstream.open() == 0);
        assert!(serves(number));
        wait_until("quiet again", || upstream.open() == 0);
    };
    idle_upstream_closed(1);
    let before = held(&process);
    for number in 2..=200 {
        mount.swap(&format!("v{number}"), &version(&upstream, number));
        mount.remove(&format!("v{}", number - 1));
        // Some are seen one by one, most in heaps.
        if number % 50 == 0 {
            wait_until("a swap", || serves(number));
        }
    }
    wait_until("the last swap", || serves(200));
    idle_upstream_closed(200);
    assert_eq!(held(&process), before);
    assert!(before.1 > 0, "no watch was found");
}
