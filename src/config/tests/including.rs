//! Files that include others: which are read, in which order, and what is said of them.

use std::os::unix::fs::symlink;

use super::*;

const MAIN: &str =
    "include = [\"conf.d/*.toml\"]\n[listener.public]\naddress = \"127.0.0.1:8080\"\n";
const UPSTREAM: &str = "[upstream.lakeside]\nurl = \"http://127.0.0.1:9001/a2a\"\n";

fn endpoint(name: &str) -> String {
    format!("[endpoint.{name}]\npath = \"/{name}\"\nupstream = \"lakeside\"\n")
}

/// A directory with files in it.
struct Tree(tempfile::TempDir);

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sources(&self) -> Sources {
        Sources::read(&self.path("forecourt.toml"), &env).unwrap()
    }

    fn load(&self) -> Result<Settings, Problems> {
        self.sources().parse(&env)
    }

    #[track_caller]
    fn good(&self) -> Settings {
        self.load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// The problems, or the warnings, with paths as seen from the directory.
    fn said(&self) -> String {
        let said = match self.load() {
            Ok(settings) => settings.warnings.to_string(),
            Err(problems) => problems.to_string(),
        };
        said.replace(&format!("{}/", self.0.path().display()), "")
    }

    /// What was read, as seen from the directory.
    fn read(&self) -> Vec<String> {
        let sources = self.sources();
        let files = sources.files().map(|it| it.strip_prefix(self.0.path()));
        files.map(|it| it.unwrap().display().to_string()).collect()
    }
}

fn names(settings: &Settings) -> Vec<&str> {
    settings.endpoints.iter().map(|it| &*it.name).collect()
}

#[test]
fn files_are_read_in_the_order_of_patterns_then_names() {
    let tree = Tree::of(&[
        (
            "forecourt.toml",
            "include = [\"late.toml\", \"conf.d/*.toml\", \"conf.d/?-*.json\", \"conf.d/b.toml\"]\n[endpoint.main]\npath = \"/\"\nupstream = \"lakeside\"\n[listener.public]\naddress = \"127.0.0.1:8080\"\n",
        ),
        ("conf.d/b.toml", &endpoint("b")),
        ("conf.d/a.toml", &endpoint("a")),
        ("conf.d/10.toml", "# nothing but this\n"),
        ("conf.d/9.toml", ""),
        ("conf.d/.a.toml", "half a li"),
        ("conf.d/a.toml~", "half a li"),
        ("conf.d/deeper/c.toml", "half a li"),
        (
            "conf.d/1-j.json",
            r#"{"endpoint": {"j": {"path": "/j", "upstream": "lakeside"}}}"#,
        ),
        ("late.toml", UPSTREAM),
    ]);
    assert_eq!(names(&tree.good()), ["main", "a", "b", "j"]);
    assert_eq!(
        tree.read(),
        [
            "forecourt.toml",
            "late.toml",
            "conf.d/10.toml",
            "conf.d/9.toml",
            "conf.d/a.toml",
            "conf.d/b.toml",
            "conf.d/1-j.json"
        ]
    );
    assert!(tree.good().warnings.is_empty());
}

#[test]
fn a_file_can_be_of_json_and_include_toml_by_one_name() {
    let tree = Tree::of(&[
        ("a.toml", &format!("{UPSTREAM}{}", endpoint("a"))),
        (
            "forecourt.json",
            r#"{"include": "${NAMED:-a}.toml", "listener": {"public": {"address": "127.0.0.1:8080"}}}"#,
        ),
    ]);
    let settings = load(&tree.path("forecourt.json"), &env).unwrap();
    assert_eq!(names(&settings), ["a"]);
}

#[test]
fn directories_can_be_matched_and_the_file_itself_is_left_out() {
    let tree = Tree::of(&[
        (
            "forecourt.toml",
            &MAIN.replace("conf.d/*.toml", "*.toml\", \"sites/*/site.toml"),
        ),
        ("sites/a/site.toml", &endpoint("a")),
        ("sites/b/site.toml", &endpoint("b")),
        ("sites/empty/other.toml", "half a li"),
        ("sites/file", ""),
        ("upstream.toml", UPSTREAM),
    ]);
    assert_eq!(names(&tree.good()), ["a", "b"]);
    let sources = tree.sources();
    for path in ["sites/*", "*", "sites/b/site.toml", "forecourt.toml"] {
        assert!(sources.followed().contains(&tree.path(path)), "{path}");
    }
}

#[test]
fn plain_tables_are_put_together_and_what_two_files_say_is_a_problem_at_both() {
    let tree = Tree::of(&[
        (
            "forecourt.toml",
            &format!("{MAIN}[limits]\nbody = \"2MiB\"\n"),
        ),
        (
            "conf.d/a.toml",
            &format!("[limits]\nheader_count = 7\n{UPSTREAM}{}", endpoint("a")),
        ),
    ]);
    let settings = tree.good();
    assert_eq!(
        (settings.limits.body, settings.limits.header_count),
        (2 << 20, 7)
    );

    tree.write(
        "conf.d/b.toml",
        &format!("[limits]\nbody = \"1MiB\"\n{}", endpoint("a")),
    );
    tree.write("conf.d/c.toml", "limits = 3\n[endpoint]\nb = 1\na = 2\n");
    let said = tree.said();
    for line in [
        "conf.d/b.toml:2:1: limits.body: was given before, on line 5 of forecourt.toml",
        "conf.d/b.toml:3:11: endpoint.a: was given before, on line 5 of conf.d/a.toml",
        "conf.d/c.toml:1:1: limits: was given before, on line 4 of forecourt.toml",
        "conf.d/c.toml:4:1: endpoint.a: was given before, on line 5 of conf.d/a.toml",
        "conf.d/c.toml:3:1: endpoint.b: stands in [endpoint], which holds only tables with names",
        "  3 | [endpoint.a]\n    |           ^",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert_eq!(said.matches(".toml:").count(), 5, "{said}");
}

#[test]
fn problems_carry_their_file_in_order_and_name_the_other_one() {
    let tree = Tree::of(&[
        ("forecourt.toml", &format!("{MAIN}bcklog = 3\n")),
        (
            "conf.d/a.toml",
            &format!("{UPSTREAM}# \u{e9}\n{}pth = 1", endpoint("a")),
        ),
        (
            "conf.d/b.toml",
            &format!(
                "\u{feff}{}",
                endpoint("a").replace("endpoint.a", "endpoint.b")
            ),
        ),
        ("conf.d/c.json", ""),
        (
            "conf.d/c.toml",
            "[listener.second]\naddress = \"127.0.0.1:8080\"\n[endpoint.c]\npath = \"/c\"\nupstream = \"lakesde\"\n",
        ),
    ]);
    let said = tree.said();
    let places: Vec<_> = said.lines().filter(|it| it.contains(".toml:")).collect();
    assert_eq!(
        places,
        [
            "forecourt.toml:4:1: listener.public.bcklog: no such key in [listener.NAME]",
            "conf.d/a.toml:7:1: endpoint.a.pth: no such key in [endpoint.NAME]",
            "conf.d/b.toml:2:8: endpoint.b.path: has the same host and path as endpoint.a on line 5 of conf.d/a.toml",
            "conf.d/c.toml:2:11: listener.second.address: is the address of listener.public on line 3 of forecourt.toml",
            "conf.d/c.toml:5:12: endpoint.c.upstream: no upstream is named \"lakesde\"",
        ]
    );
    assert!(
        said.contains("  5 | upstream = \"lakesde\"\n    |            ^^^^^^^^^"),
        "{said}"
    );
    let problems = tree.load().unwrap_err();
    let offsets: Vec<_> = problems.iter().map(Problem::offset).collect();
    assert!(offsets.is_sorted() && offsets[0] < offsets[4]);
}

#[test]
fn what_cannot_be_understood_is_told_of_every_file_and_alone() {
    let tree = Tree::of(&[
        ("forecourt.toml", &format!("{MAIN}unknown = 1\n")),
        ("conf.d/a.toml", "[endpoint.a\n"),
        ("conf.d/b.toml", "[endpoint.b]\npath = \"/b\n"),
        (
            "conf.d/c.toml",
            "[endpoint.c]\nx = { authorization = \"Bearer s3cret\"",
        ),
    ]);
    let said = tree.said();
    for file in ["conf.d/a.toml:1:", "conf.d/b.toml:2:", "conf.d/c.toml:2:"] {
        assert!(said.contains(file), "{file}\n{said}");
    }
    assert!(
        !said.contains("unknown") && !said.contains("s3cret"),
        "{said}"
    );
    tree.write("conf.d/a.toml", "");
    tree.write("conf.d/b.toml", "");
    tree.write(
        "conf.d/c.toml",
        "[upstream.x]\nurl = 1\nheaders = { authorization = \"s3cret\" }\n",
    );
    assert!(!tree.said().contains("s3cret"), "{}", tree.said());
    assert!(!format!("{:?}", tree.sources()).contains("s3cret"));
}

#[test]
fn what_is_not_there_is_a_problem_and_what_matches_nothing_a_warning() {
    let whole = format!("{MAIN}{UPSTREAM}{}", endpoint("a"));
    let tree = Tree::of(&[("forecourt.toml", &whole)]);
    let warned = "forecourt.toml:1:12: warning: include[0]: matches no file\n  1 | include = [\"conf.d/*.toml\"]\n";
    assert!(tree.said().starts_with(warned), "{}", tree.said());
    assert!(tree.sources().followed().contains(&tree.path("conf.d/*")));

    fs::create_dir_all(tree.path("conf.d")).unwrap();
    symlink("nowhere", tree.path("conf.d/dangling.toml")).unwrap();
    fs::create_dir_all(tree.path("conf.d/directory.toml")).unwrap();
    fs::write(tree.path("conf.d/latin.toml"), b"# a\n# \xe9").unwrap();
    tree.write(
        "forecourt.toml",
        &whole.replace("*.toml\"", "*.toml\", \"more.toml\""),
    );
    let said = tree.said();
    for line in [
        "forecourt.toml:1:12: include[0]: conf.d/dangling.toml cannot be read: No such file",
        "forecourt.toml:1:12: include[0]: conf.d/directory.toml cannot be read: it is no file",
        "forecourt.toml:1:12: include[0]: conf.d/latin.toml cannot be read: not UTF-8 on line 2",
        "forecourt.toml:1:29: include[1]: more.toml cannot be read: No such file",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

#[test]
fn an_included_file_includes_nothing_and_is_a_table() {
    let tree = Tree::of(&[
        (
            "forecourt.toml",
            &MAIN.replace("conf.d/*.toml", "conf.d/*.toml\", \"conf.d/*.json"),
        ),
        ("conf.d/a.toml", "include = [\"b.toml\"]\n"),
        ("conf.d/b.json", "[1]"),
    ]);
    let said = tree.said();
    assert!(
        said.contains("conf.d/a.toml:1:1: include: stands in a file that is included itself"),
        "{said}"
    );
    assert!(
        said.contains("conf.d/b.json:1:1: expected a table, found a list"),
        "{said}"
    );
}

#[test]
fn a_pattern_that_is_none_is_a_problem() {
    let whole = format!("{MAIN}{UPSTREAM}{}", endpoint("a"));
    for (written, what) in [
        ("3", "expected a list, found the integer 3"),
        (
            "[3]",
            "include[0]: expected a file or a pattern, such as \"conf.d/*.toml\", found the integer 3",
        ),
        ("[\"\"]", "\"\" is empty"),
        (
            "[\"conf.d/\"]",
            "\"conf.d/\" includes what is no configuration",
        ),
        ("[\"*\"]", "\"*\" includes what is no configuration"),
        (
            "[\"key.pem\"]",
            "\"key.pem\" includes what is no configuration",
        ),
        ("[\"**/*.toml\"]", "has a `**`"),
        ("[\"${UNSET}\"]", "the variable UNSET is not set"),
    ] {
        let tree = Tree::of(&[(
            "forecourt.toml",
            &whole.replace("[\"conf.d/*.toml\"]", written),
        )]);
        assert!(tree.said().contains(what), "{written}: {}", tree.said());
        assert_eq!(
            tree.said().matches(".toml:1:").count(),
            1,
            "{}",
            tree.said()
        );
    }
}

#[test]
fn there_is_an_end_to_files_and_to_bytes() {
    let tree = Tree::of(&[(
        "forecourt.toml",
        &format!("{MAIN}{UPSTREAM}{}", endpoint("a")),
    )]);
    for number in 0..include::MOST {
        tree.write(&format!("conf.d/{number}.toml"), "# nothing\n");
    }
    assert_eq!(tree.good().warnings.len(), 0);
    tree.write("conf.d/one-more.toml", "# nothing\n");
    assert!(
        tree.said()
            .contains("include[0]: matches more than 1000 files"),
        "{}",
        tree.said()
    );
    fs::remove_dir_all(tree.path("conf.d")).unwrap();

    let half = "#".repeat(sources::LARGEST / 2);
    tree.write("conf.d/a.toml", &half);
    assert_eq!(tree.good().warnings.len(), 0);
    tree.write("conf.d/b.toml", &half);
    let what = "conf.d/b.toml cannot be read: with it, the files would have more than 4 MiB";
    assert!(tree.said().contains(what), "{}", tree.said());
}

#[test]
fn relative_paths_start_where_the_first_file_stands() {
    let tree = Tree::of(&[
        ("forecourt.toml", MAIN),
        (
            "conf.d/a.toml",
            &format!(
                "{UPSTREAM}{}[log]\naccess = \"logs/access.log\"\n",
                endpoint("a")
            ),
        ),
    ]);
    let access = AccessLog::File(tree.path("logs/access.log"));
    assert_eq!(tree.good().log.access, access);
}

#[test]
fn one_text_includes_nothing() {
    let tree = Tree::of(&[("conf.d/a.toml", "half a li")]);
    let text = format!("{MAIN}{UPSTREAM}{}", endpoint("a"));
    let settings = parse(&text, Format::Toml, &tree.path("forecourt.toml"), &env).unwrap();
    assert_eq!((names(&settings), settings.warnings.len()), (vec!["a"], 0));
}

#[test]
fn a_candidate_includes_what_is_below_its_place_and_nothing_else() {
    let whole = format!("{MAIN}{UPSTREAM}{}", endpoint("a"));
    let tree = Tree::of(&[
        ("etc/forecourt.toml", &whole),
        ("etc/conf.d/b.toml", &endpoint("b")),
        ("secret.toml", "token = \"s3cret\"\n"),
    ]);
    let place = tree.path("etc/forecourt.toml");
    let origin = tree.path("etc/candidate.toml");
    let candidate =
        |text: &str| Sources::candidate(text, Format::Toml, &origin, &place, &env).parse(&env);
    assert_eq!(names(&candidate(&whole).unwrap()), ["a", "b"]);
    // It stands in the place of that file, which is not read beside it.
    let beside = whole.replace("conf.d/*.toml", "*.toml");
    assert_eq!(names(&candidate(&beside).unwrap()), ["a"]);
    let absolute = tree.path("secret.toml").display().to_string();
    for reaching in ["../secret.toml", "conf.d/../../*.toml", &absolute] {
        let said = candidate(&whole.replace("conf.d/*.toml", reaching))
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("include[0]: leads elsewhere than below"),
            "{said}"
        );
        assert!(
            !said.contains("s3cret") && !said.contains("token"),
            "{said}"
        );
    }
    let alone = Sources::alone(&whole, Format::Toml, &origin, &env).parse(&env);
    let said = alone.unwrap_err().to_string();
    assert!(
        said.contains("include[0]: names files, which are not read here"),
        "{said}"
    );
}
