//! When the guard goes back, and when it does not, on a clock of the test's own.

use super::*;
use crate::config::{Format, parse};

/// `rollback_on_errors` as a configuration writes it.
fn guard(window: &str, ratio: &str, min_requests: u32) -> Guard {
    let text = format!(
        "[reload]\nrollback_on_errors = {{ window = \"{window}\", ratio = \"{ratio}\", \
         min_requests = {min_requests} }}\n[listener.a]\naddress = \"127.0.0.1:1\"\n\
         [upstream.a]\nurl = \"http://a\"\n[endpoint.a]\npath = \"/\"\nupstream = \"a\"\n"
    );
    let settings = parse(&text, Format::Toml, std::path::Path::new("f"), &|_| None);
    settings.unwrap().reload.rollback_on_errors.unwrap()
}

/// Counters that go on over configurations, as endpoints' do, and a clock.
struct Scene {
    guardian: Guardian,
    now: Instant,
    guard: Option<Guard>,
    generation: u64,
    is_rollback: bool,
    ended: u64,
    /// Of those that began under the configuration that serves.
    failed: u64,
}

impl Scene {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            guardian: Guardian::new(now, 1, Tally::default()),
            now,
            guard: Some(guard("30s", "5%", 100)),
            generation: 1,
            is_rollback: false,
            ended: 0,
            failed: 0,
        }
    }

    fn tally(&self) -> Tally {
        Tally {
            ended: self.ended,
            failed: self.failed,
        }
    }

    fn look(&mut self) -> Option<(u64, Figures)> {
        let look = Look {
            generation: self.generation,
            is_rollback: self.is_rollback,
            guard: self.guard,
            tally: self.tally(),
        };
        self.guardian.look(self.now, look)
    }

    /// So many requests end within so many seconds, so many of them failed. The first verdict.
    fn pass(&mut self, seconds: u32, ended: u64, failed: u64) -> Option<(u64, Figures)> {
        let (ended_before, failed_before) = (self.ended, self.failed);
        let steps = u64::from(seconds) * 4;
        for step in 1..=steps {
            self.now += LOOK;
            self.ended = ended_before + ended * step / steps;
            self.failed = failed_before + failed * step / steps;
            if let Some(verdict) = self.look() {
                return Some(verdict);
            }
        }
        None
    }

    fn swap(&mut self, is_rollback: bool) {
        self.guardian.note(self.now, self.tally());
        self.generation += 1;
        self.is_rollback = is_rollback;
        self.failed = 0;
        assert_eq!(self.look(), None, "nothing is known yet");
    }
}

#[test]
fn too_many_failures_after_a_swap_go_back_to_the_one_before() {
    let mut scene = Scene::new();
    assert_eq!(scene.pass(60, 1000, 10), None);
    scene.swap(false);
    let (to, figures) = scene.pass(10, 400, 200).expect("half of them fail");
    assert_eq!((to, figures.generation), (1, 2));
    // As soon as enough have ended, not at the end of the window.
    assert_eq!(figures.ended, 100);
    assert_eq!(figures.failed, 50);
    assert_eq!(figures.after, Duration::from_millis(2500));
    assert_eq!(figures.ratio.to_string(), "5%");
    // Once.
    assert_eq!(scene.pass(10, 400, 400), None);
}

#[test]
fn what_came_and_went_between_two_looks_is_what_is_gone_back_to() {
    let mut scene = Scene::new();
    assert_eq!(scene.pass(60, 1000, 10), None);
    scene.generation += 1;
    scene.swap(false);
    let (to, figures) = scene.pass(10, 400, 200).expect("half of them fail");
    assert_eq!((to, figures.generation), (2, 3));
    // Also while one that fails is still watched.
    let mut scene = Scene::new();
    scene.swap(false);
    assert_eq!(scene.pass(1, 90, 0), None);
    scene.generation += 1;
    scene.swap(false);
    let (to, _) = scene.pass(10, 400, 200).expect("half of them fail");
    assert_eq!(to, 3);
}

#[test]
fn at_the_ratio_it_stays_and_above_it_it_goes() {
    for (failed, goes) in [(49, false), (50, false), (52, true)] {
        let mut scene = Scene::new();
        scene.swap(false);
        // All at once, so that the last look decides.
        scene.now += Duration::from_secs(1);
        (scene.ended, scene.failed) = (1000, failed);
        assert_eq!(scene.look().is_some(), goes, "{failed}");
    }
}

#[test]
fn what_failed_before_is_not_its_fault() {
    let mut scene = Scene::new();
    assert_eq!(scene.pass(10, 100, 6), None);
    scene.swap(false);
    assert_eq!(scene.pass(60, 10_000, 10_000), None);
    // A long time ago is not before: then it worked.
    let mut scene = Scene::new();
    assert_eq!(scene.pass(10, 100, 100), None);
    assert_eq!(scene.pass(60, 1000, 0), None);
    scene.swap(false);
    assert_eq!(scene.pass(5, 1000, 1000).map(|(to, _)| to), Some(1));
}

#[test]
fn too_few_requests_prove_nothing() {
    let mut scene = Scene::new();
    scene.swap(false);
    assert_eq!(scene.pass(40, 99, 99), None);
    // The window is over: now it is somebody else's fault.
    assert_eq!(scene.pass(40, 10_000, 10_000), None);
}

#[test]
fn the_window_ends() {
    let mut scene = Scene::new();
    scene.swap(false);
    assert_eq!(scene.pass(30, 1000, 0), None);
    assert_eq!(scene.pass(30, 100_000, 100_000), None);
    // At its very end it still counts.
    let mut scene = Scene::new();
    scene.swap(false);
    scene.now += Duration::from_secs(30);
    (scene.ended, scene.failed) = (100, 100);
    assert_eq!(scene.look().map(|(to, _)| to), Some(1));
    let mut scene = Scene::new();
    scene.swap(false);
    scene.now += Duration::from_millis(30_001);
    (scene.ended, scene.failed) = (100, 100);
    assert_eq!(scene.look(), None);
}

#[test]
fn without_a_guard_nothing_is_watched() {
    let mut scene = Scene::new();
    scene.guard = None;
    scene.swap(false);
    assert_eq!(scene.pass(60, 10_000, 10_000), None);
    // One that comes with a configuration watches it.
    let mut scene = Scene::new();
    scene.guard = None;
    assert_eq!(scene.pass(60, 1000, 0), None);
    scene.guard = Some(guard("1s", "50%", 1));
    scene.swap(false);
    assert_eq!(scene.pass(1, 8, 8).map(|(_, it)| it.ended), Some(2));
}

#[test]
fn what_was_gone_back_to_is_not_watched() {
    let mut scene = Scene::new();
    scene.swap(false);
    assert_eq!(scene.pass(10, 400, 200).map(|(to, _)| to), Some(1));
    scene.swap(true);
    assert_eq!(scene.pass(60, 10_000, 10_000), None, "to and fro");
}

#[test]
fn the_next_configuration_is_measured_by_what_was_gone_back_to() {
    let mut scene = Scene::new();
    scene.swap(false);
    assert!(scene.pass(10, 400, 200).is_some());
    scene.swap(true);
    assert_eq!(scene.pass(5, 200, 0), None);
    // The bad one failed within this window, but under another generation.
    scene.swap(false);
    assert_eq!(scene.pass(10, 400, 200).map(|(to, _)| to), Some(3));
}

#[test]
fn a_second_swap_is_watched_anew() {
    let mut scene = Scene::new();
    scene.swap(false);
    assert_eq!(scene.pass(20, 1000, 0), None);
    scene.swap(false);
    // The first one's window is over by now.
    assert_eq!(scene.pass(20, 1000, 0), None);
    let (to, figures) = scene.pass(5, 1000, 1000).expect("it is watched");
    assert_eq!((to, figures.generation), (2, 3));
}

#[test]
fn one_that_fails_already_is_no_refuge() {
    let mut scene = Scene::new();
    scene.swap(false);
    // It fails, and too few have ended to take it back.
    assert_eq!(scene.pass(5, 50, 50), None);
    scene.swap(false);
    assert_eq!(scene.pass(10, 400, 400).map(|(to, _)| to), Some(1));
    // Where all was bad before the first of them, nothing is anybody's fault.
    let mut scene = Scene::new();
    assert_eq!(scene.pass(10, 100, 100), None);
    scene.swap(false);
    assert_eq!(scene.pass(5, 50, 50), None);
    scene.swap(false);
    assert_eq!(scene.pass(10, 400, 400), None);
}

#[test]
fn a_long_window_is_looked_back_over_without_keeping_every_look() {
    let mut scene = Scene::new();
    scene.guard = Some(guard("1h", "5%", 100));
    // Half an hour ago it failed: within the window.
    assert_eq!(scene.pass(60, 1000, 1000), None);
    assert_eq!(scene.pass(1740, 1000, 0), None);
    assert!(
        scene.guardian.looks.len() <= 128,
        "{}",
        scene.guardian.looks.len()
    );
    scene.swap(false);
    assert_eq!(scene.pass(60, 10_000, 10_000), None);
}

#[test]
fn many_swaps_keep_little() {
    let mut scene = Scene::new();
    for _ in 0..1000 {
        scene.swap(false);
        assert_eq!(scene.pass(1, 10, 0), None);
    }
    assert!(scene.guardian.looks.len() < 10);
}

#[test]
fn exactly_what_the_gateway_fails_is_a_failure() {
    use crate::protocol::Outcome;
    let failures: Vec<_> = Outcome::ALL
        .into_iter()
        .filter(|it| it.is_failure())
        .map(Outcome::label)
        .collect();
    let wanted = [
        "upstream_unreachable",
        "upstream_reset",
        "upstream_timeout",
        "upstream_invalid",
        "overloaded",
        "internal",
    ];
    assert_eq!(failures, wanted);
}
