//! Decides when the configuration file is looked at, the files that it includes, and those that it
//! names.
//!
//! The directories of the whole symlink chain are watched, because a watch on the file itself goes
//! deaf after one rename or one Kubernetes `..data` swap. A change is acted on when two looks 250 ms
//! apart agree, because half a file can be a valid file. A look every ten seconds is the net below
//! that, for file systems without notification. Must never act on the same content twice.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::reload::{Look, Reloader};

/// Two looks this far apart have to agree.
const SETTLE: Duration = Duration::from_millis(250);

/// How long a look waits once something has told: a log in the same directory tells all the time.
const BREATH: Duration = Duration::from_millis(20);

/// How often the file is looked at when nothing tells.
const POLL: Duration = Duration::from_secs(10);

/// How many looks a file that keeps changing gets before it is acted on as it is.
const LOOKS: usize = 40;

/// How many symlinks are followed.
const LINKS: usize = 40;

/// Follows the configuration file for ever, and reloads at each change of its content.
pub async fn follow(reloader: Arc<Reloader>) {
    let changed = Arc::new(Notify::new());
    let mut watched = Watched::new(&changed);
    watched.arm(&reloader.followed());
    let mut poll = interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = changed.notified() => sleep(BREATH).await,
            _ = poll.tick() => {}
        }
        // A swap may have changed what the chain goes through.
        watched.arm(&reloader.followed());
        if let Some(look) = settle(&reloader).await
            && reloader.apply(look).is_none()
        {
            // It may have changed before the directories were watched anew: look again at once.
            changed.notify_one();
        }
    }
}

/// Looks until two looks agree. `None`: they saw nothing new.
async fn settle(reloader: &Reloader) -> Option<Look> {
    let mut last = reloader.look();
    for _ in 0..LOOKS {
        if !reloader.is_news(&last) {
            return None;
        }
        sleep(SETTLE).await;
        let next = reloader.look();
        if next == last {
            break;
        }
        last = next;
    }
    reloader.is_news(&last).then_some(last)
}

/// The directories that are watched now.
struct Watched {
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
}

impl Watched {
    fn new(changed: &Arc<Notify>) -> Self {
        let changed = Arc::clone(changed);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error (such as an overflow) means that something may have been missed: look.
            if event.map_or(true, |event| !event.kind.is_access()) {
                changed.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(%error, "cannot watch the configuration file; it is polled");
            })
            .ok();
        Self {
            watcher,
            directories: BTreeSet::new(),
        }
    }

    /// Watches the directories that the files' chains go through now, anew each time: a directory
    /// of the same name may be another one.
    fn arm(&mut self, paths: &[PathBuf]) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for directory in std::mem::take(&mut self.directories) {
            // It may be gone already.
            let _ = watcher.unwatch(&directory);
        }
        let mut wanted = BTreeSet::new();
        for path in paths {
            directories(path, LINKS, &mut wanted);
        }
        for directory in wanted {
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.directories.insert(directory);
                }
                Err(error) => {
                    tracing::debug!(%error, directory = %directory.display(), "cannot watch");
                }
            }
        }
    }
}

/// Collects the directories in which a rename could change what the path leads to.
fn directories(path: &Path, links: usize, found: &mut BTreeSet<PathBuf>) {
    let Ok(path) = std::path::absolute(path) else {
        return;
    };
    if let Some(parent) = path.parent() {
        found.insert(parent.to_owned());
    }
    let Some(links) = links.checked_sub(1) else {
        return;
    };
    for ancestor in path.ancestors() {
        let Ok(target) = link(ancestor) else {
            continue;
        };
        let Some(parent) = ancestor.parent() else {
            continue;
        };
        found.insert(parent.to_owned());
        let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
        let led_to = parent.join(target).join(rest);
        directories(&led_to, links, found);
        return;
    }
}

fn link(path: &Path) -> io::Result<PathBuf> {
    fs::read_link(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_whole_chain_is_watched() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["etc", "etc/..2026_a", "real"] {
            fs::create_dir(root.join(directory)).unwrap();
        }
        fs::write(root.join("real/forecourt.toml"), "").unwrap();
        symlink(
            "../../real/forecourt.toml",
            root.join("etc/..2026_a/forecourt.toml"),
        )
        .unwrap();
        symlink("..2026_a", root.join("etc/..data")).unwrap();
        symlink("..data/forecourt.toml", root.join("etc/forecourt.toml")).unwrap();
        let mut found = BTreeSet::new();
        directories(&root.join("etc/forecourt.toml"), LINKS, &mut found);
        for directory in ["etc", "etc/..data", "etc/..2026_a"] {
            assert!(
                found.contains(&root.join(directory)),
                "{directory}: {found:?}"
            );
        }
        assert!(
            found
                .iter()
                .any(|it| it.canonicalize().unwrap() == root.join("real"))
        );
    }

    #[test]
    fn a_ring_of_links_ends() {
        let root = tempfile::tempdir().unwrap();
        symlink("b", root.path().join("a")).unwrap();
        symlink("a", root.path().join("b")).unwrap();
        let mut found = BTreeSet::new();
        directories(&root.path().join("a"), LINKS, &mut found);
        assert!(!found.is_empty());
    }
}
