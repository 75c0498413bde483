//! The commands as a shell sees them: arguments, exit codes, what is printed where, and for whom.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::gateway::{PRELUDE, dealer};
use crate::support::process::{Ended, run, run_with};
use crate::support::{Gateway, Upstream};

#[test]
fn commands_and_exit_codes() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let good = format!("{PRELUDE}{}", dealer(&upstream));
    let tls = good.replace(
        "[admin]",
        "[listener.secure]\naddress = \"127.0.0.1:0\"\ntls = { certificate = \"c.pem\", key = \"k.pem\" }\n[admin]",
    );
    let bad = good
        .replace("path = ", "pth = ")
        .replace("http://", "ftp://");
    for (name, text) in [("good.toml", &good), ("tls.toml", &tls), ("bad.toml", &bad)] {
        fs::write(directory.path().join(name), text).unwrap();
    }

    let ended = run(&["check", &path("good.toml")]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), &*format!("{}: ok\n", path("good.toml")))
    );
    assert_eq!(ended.stderr, "");
    for (file, problems) in [
        (
            "bad.toml",
            &["bad.toml:14:1: endpoint.lakeside.pth", "\"ftp://"][..],
        ),
        (
            "tls.toml",
            &["listener.secure.tls.certificate", "c.pem: cannot be read"][..],
        ),
        ("none.toml", &["none.toml"][..]),
    ] {
        for command in [&["check"][..], &["run", "-c"][..]] {
            let file = path(file);
            let mut arguments = command.to_vec();
            arguments.push(&file);
            let ended = run(&arguments);
            assert_eq!(ended.code, Some(78), "{arguments:?}: {}", ended.stderr);
            assert_eq!(ended.stdout, "");
            for problem in problems {
                assert!(
                    ended.stderr.contains(problem),
                    "{problem}: {}",
                    ended.stderr
                );
            }
        }
    }
    for arguments in [
        &[][..],
        &["fly"][..],
        &["run", "--wings"][..],
        &["check", "a", "b"][..],
    ] {
        assert_eq!(run(arguments).code, Some(2), "{arguments:?}");
    }
    let version = run(&["--version"]);
    assert_eq!(
        (version.code, &*version.stdout),
        (
            Some(0),
            concat!("forecourt ", env!("CARGO_PKG_VERSION"), "\n")
        )
    );

    // An address that is taken is a failure while running.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let clash = good.replacen("127.0.0.1:0", &address, 1);
    fs::write(directory.path().join("clash.toml"), clash).unwrap();
    let ended = run(&["run", "-c", &path("clash.toml")]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("cannot listen on"),
        "{}",
        ended.stderr
    );
}

#[test]
fn check_tells_a_program_the_same_as_a_person() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        let ended = run(&["check", "--format", "json", file.to_str().unwrap()]);
        assert_eq!(ended.stderr, "");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(told["file"], file.to_str().unwrap());
        (ended.code, told)
    };
    let good = format!("{PRELUDE}{}", dealer(&upstream));
    let (code, told) = check(&good);
    assert_eq!(code, Some(0));
    assert_eq!(told["ok"], true);
    assert_eq!(told["problems"], json!([]));

    let (code, told) = check(
        &good
            .replace("path = ", "pth = ")
            .replace("http://", "ftp://"),
    );
    assert_eq!(code, Some(78));
    assert_eq!(told["ok"], false);
    let problems = told["problems"].as_array().unwrap();
    let text = run(&["check", file.to_str().unwrap()]).stderr;
    assert!(problems.len() >= 2, "{told}");
    for problem in problems {
        let what = problem["what"].as_str().unwrap();
        assert!(text.contains(what), "{what} is not in {text}");
    }
}

#[test]
fn a_running_gateway_is_reloaded_from_the_command_line() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&dealer(&upstream));
    let admin = format!("http://{}", gateway.inner.admin_address());
    let reload = || run(&["reload", "--admin", &admin]);
    let ended = reload();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_eq!(ended.stdout, "unchanged, generation 1\n");

    gateway.write(&format!(
        "{}# now\n[quota.x]\nper = \"caller\"\n",
        dealer(&upstream)
    ));
    let ended = reload();
    assert_eq!((ended.code, &*ended.stdout), (Some(78), ""));
    assert!(ended.stderr.contains("quota.x"), "{}", ended.stderr);

    // The variable says the same as the argument, and the argument wins.
    let ended = run_with(&["reload"], "FORECOURT_ADMIN", &admin);
    assert_eq!(ended.code, Some(78));
    let closed = "http://127.0.0.1:1";
    let ended = run_with(&["reload", "--admin", closed], "FORECOURT_ADMIN", &admin);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert!(
        ended
            .stderr
            .starts_with("no gateway answers at http://127.0.0.1:1/: "),
        "{}",
        ended.stderr
    );
    let ended = run(&["reload", "--admin", "https://127.0.0.1:9901"]);
    assert_eq!(ended.code, Some(2));
}

/// The commands that `--help` lists.
fn listed(arguments: &[&str]) -> BTreeSet<String> {
    let Ended { stdout, .. } = run(arguments);
    let commands = stdout.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    // A description that goes on stands further in.
    let lines = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let commands = listed(&["--help"]);
    assert!(
        commands.contains("run") && commands.contains("key"),
        "{commands:?}"
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(&["completions", shell]);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{shell}");
        for command in &commands {
            assert!(
                ended.stdout.contains(command),
                "{shell} does not know {command}"
            );
        }
    }
    assert_eq!(run(&["completions", "csh"]).code, Some(2));

    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("man8");
    let ended = run(&["man", "--to", to.to_str().unwrap()]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let found: BTreeSet<String> = fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut wanted: BTreeSet<String> = commands
        .iter()
        .map(|command| format!("forecourt-{command}.8"))
        .collect();
    wanted.insert("forecourt.8".into());
    wanted.extend(
        listed(&["key", "--help"])
            .iter()
            .map(|it| format!("forecourt-key-{it}.8")),
    );
    assert_eq!(found, wanted);
    let page = fs::read_to_string(to.join("forecourt-run.8")).unwrap();
    assert!(page.contains(".TH forecourt-run 8"), "{page}");
    assert!(page.contains("FORECOURT_CONFIG"), "{page}");
    assert_eq!(
        run(&["man"]).stdout,
        fs::read_to_string(to.join("forecourt.8")).unwrap()
    );
}

#[test]
fn nothing_is_coloured_but_a_terminal() {
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["fly"],
        &["check", "nowhere.toml"],
    ] {
        let Ended { stdout, stderr, .. } = run(arguments);
        assert!(
            !stdout.contains('\x1b') && !stderr.contains('\x1b'),
            "{arguments:?}"
        );
    }
}
