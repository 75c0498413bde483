//! Decides which keys of an issuer are in force: the last that could be used. And when a token that
//! names a key which is not among them is a reason to fetch them anew.
//!
//! Tokens that name unknown keys can be made up by anybody and cost nothing: they cause one fetch in
//! ten seconds, no more, and a bounded number of requests waits for it, a bounded time.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use crate::credential::token::Keyset;
use crate::limit::Moment;
use crate::observe::{KeyMeters, Metrics, Timestamp};
use crate::upstream::Upstream;

/// How far apart fetches are that unknown keys cause.
const APART: Duration = Duration::from_secs(10);

/// How long a request waits for one.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many requests wait at once, for each issuer.
const MOST_WAITING: usize = 64;

/// An issuer's keys, at this moment and from now on.
pub struct Keys {
    current: ArcSwap<Keyset>,
    source: Option<Source>,
    meters: OnceLock<KeyMeters>,
    course: Mutex<Course>,
    /// Whoever fetches is to do so now.
    pub(super) wanted: Notify,
    /// Counts fetches that have ended.
    ended: watch::Sender<u64>,
    waiting: Semaphore,
}

/// Where keys are fetched.
#[derive(Debug)]
pub(in crate::state) struct Source {
    /// The issuer's name.
    pub(in crate::state) issuer: Box<str>,
    /// Where they are.
    pub(in crate::state) upstream: Arc<Upstream>,
    /// Path and query.
    pub(in crate::state) target: String,
    /// How often.
    pub(in crate::state) refresh: Duration,
}

/// What came of reading keys: a set, or why there is none.
pub(in crate::state) type Read = Result<Arc<Keyset>, Box<str>>;

/// How reading them goes.
#[derive(Debug, Default)]
struct Course {
    told: Told,
    /// When an unknown key was a reason to fetch.
    asked: Option<Moment>,
    /// Whether a fetch is on its way that an unknown key need not ask for.
    is_awaited: bool,
}

/// What operators are told of an issuer's keys.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// When those in force were read; for a file, since they changed.
    pub read: Option<Timestamp>,
    /// When reading was tried last.
    pub tried: Option<Timestamp>,
    /// Why what was read last is not in force.
    pub error: Option<Box<str>>,
}

impl Keys {
    /// Those of a file, which somebody follows.
    pub(in crate::state) fn of_file(keyset: Arc<Keyset>, at: Timestamp) -> Self {
        let told = Told {
            read: Some(at),
            tried: Some(at),
            error: None,
        };
        let course = Course {
            told,
            ..Course::default()
        };
        Self::new(keyset, None, course)
    }

    /// Those of a URL, of which nothing came yet; or what came of it before, in another's hands.
    pub(in crate::state) fn of_url(source: Source, before: Option<&Self>) -> Self {
        let keyset = before.map_or_else(|| Arc::new(Keyset::none()), Self::current);
        let course = Course {
            told: before.map(Self::told).unwrap_or_default(),
            is_awaited: true,
            ..Course::default()
        };
        Self::new(keyset, Some(source), course)
    }

    fn new(keyset: Arc<Keyset>, source: Option<Source>, course: Course) -> Self {
        Self {
            current: ArcSwap::new(keyset),
            source,
            meters: OnceLock::new(),
            course: Mutex::new(course),
            wanted: Notify::new(),
            ended: watch::Sender::new(0),
            waiting: Semaphore::new(MOST_WAITING),
        }
    }

    /// Those in force.
    #[must_use]
    pub fn current(&self) -> Arc<Keyset> {
        self.current.load_full()
    }

    /// The number of the set that is in force.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.current.load().serial()
    }

    /// What is told of them.
    #[must_use]
    pub fn told(&self) -> Told {
        self.course.lock().told.clone()
    }

    /// Where they are fetched, unless they stand in a file.
    pub(super) fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Whether they are fetched.
    pub(in crate::state) fn is_fetched(&self) -> bool {
        self.source.is_some()
    }

    /// Counts with these meters from now on.
    pub(super) fn count_with(&self, metrics: &Metrics, issuer: &str) {
        let meters = self.meters.get_or_init(|| metrics.keys(issuer));
        meters.keys.set(count(&self.current()));
    }

    /// What came of reading them. The last that could be used stay in force; the same ones as before
    /// are no change.
    pub(in crate::state) fn take(&self, read: Read, at: Timestamp) {
        let meters = self.meters.get();
        {
            let mut course = self.course.lock();
            course.is_awaited = false;
            course.told.tried = Some(at);
            match read {
                Ok(keyset) => {
                    course.told.read = Some(at);
                    course.told.error = None;
                    if let Some(meters) = meters {
                        meters.read.inc();
                        meters.keys.set(count(&keyset));
                    }
                    if !self.current.load().is_same(&keyset) {
                        self.current.store(keyset);
                    }
                }
                Err(why) => {
                    course.told.error = Some(why);
                    if let Some(meters) = meters {
                        meters.failed.inc();
                    }
                }
            }
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Somebody names a key that is not among these. Whether they were read anew since, which is
    /// waited for, if it is due.
    pub async fn renewed(&self, now: Moment) -> bool {
        if self.source.is_none() {
            return false;
        }
        let mut ended = self.ended.subscribe();
        if !self.ask(now) {
            return false;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return false;
        };
        let changed = timeout(PATIENCE, ended.changed()).await;
        changed.is_ok_and(|changed| changed.is_ok())
    }

    /// Whether a fetch is on its way.
    fn ask(&self, now: Moment) -> bool {
        let mut course = self.course.lock();
        if course.is_awaited {
            return true;
        }
        let is_due = course.asked.is_none_or(|asked| asked.after(APART) <= now);
        if is_due {
            course.asked = Some(now);
            course.is_awaited = true;
            self.wanted.notify_one();
        }
        is_due
    }
}

fn count(keyset: &Keyset) -> i64 {
    i64::try_from(keyset.len()).unwrap_or(i64::MAX)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("current", &self.current)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Parts;

    fn of_url(before: Option<&Keys>) -> Keys {
        let upstream = Upstream::new(Parts::bare("idp", 1));
        let source = Source {
            issuer: "idp".into(),
            upstream: Arc::new(upstream),
            target: "/".to_owned(),
            refresh: Duration::from_secs(1),
        };
        Keys::of_url(source, before)
    }

    fn at(second: u64) -> Moment {
        Moment::from_nanos(second * 1_000_000_000)
    }

    fn came(keys: &Keys, error: Option<&str>) {
        let read = match error {
            None => Ok(Arc::new(Keyset::none())),
            Some(why) => Err(why.into()),
        };
        keys.take(read, Timestamp::UNIX_EPOCH);
    }

    /// How many fetches were asked for since.
    async fn wanted(keys: &Keys) -> usize {
        let mut count = 0;
        while timeout(Duration::ZERO, keys.wanted.notified())
            .await
            .is_ok()
        {
            count += 1;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_ask_for_one_fetch_in_ten_seconds() {
        let keys = of_url(None);
        came(&keys, None);
        assert_eq!(wanted(&keys).await, 0);
        for second in [100, 100, 101, 109] {
            let asked = tokio::time::Instant::now();
            // The first waits for a fetch that nobody makes; so do the others, as long as it is due.
            assert!(!keys.renewed(at(second)).await);
            assert_eq!(asked.elapsed(), PATIENCE);
        }
        assert_eq!(wanted(&keys).await, 1);
        came(&keys, Some("no connection"));
        for _ in 0..1000 {
            let asked = tokio::time::Instant::now();
            assert!(!keys.renewed(at(109)).await);
            assert_eq!(asked.elapsed(), Duration::ZERO, "nothing to wait for");
        }
        assert_eq!(wanted(&keys).await, 0);
        assert!(!keys.renewed(at(110)).await);
        assert_eq!(wanted(&keys).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_as_soon_as_keys_were_read() {
        let keys = Arc::new(of_url(None));
        // At the start they are on their way already.
        let waiting = Arc::clone(&keys);
        let waiting = tokio::spawn(async move { waiting.renewed(at(1)).await });
        tokio::task::yield_now().await;
        assert_eq!(wanted(&keys).await, 0);
        came(&keys, None);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_wait_than_may() {
        let keys = Arc::new(of_url(None));
        let all: Vec<_> = (0..MOST_WAITING + 10)
            .map(|_| {
                let keys = Arc::clone(&keys);
                tokio::spawn(async move { keys.renewed(at(1)).await })
            })
            .collect();
        // More often than tasks are run in a row.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(keys.waiting.available_permits(), 0);
        came(&keys, None);
        let mut renewed = 0;
        for one in all {
            renewed += usize::from(one.await.unwrap());
        }
        assert_eq!(renewed, MOST_WAITING);
        assert_eq!(keys.waiting.available_permits(), MOST_WAITING);
    }

    #[tokio::test]
    async fn a_file_is_not_fetched_for_anybody() {
        let keys = Keys::of_file(Arc::new(Keyset::none()), Timestamp::UNIX_EPOCH);
        assert!(!keys.renewed(at(1)).await);
    }

    #[test]
    fn the_last_that_could_be_used_stay_in_force() {
        let text = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let keyset = || Arc::new(Keyset::parse(text.as_bytes()).unwrap());
        let keys = of_url(None);
        assert!(keys.current().is_empty() && keys.told().read.is_none());
        keys.take(Ok(keyset()), Timestamp::UNIX_EPOCH);
        let serial = keys.serial();
        assert_eq!(keys.current().len(), 1);
        keys.take(Ok(keyset()), Timestamp::UNIX_EPOCH);
        assert_eq!(keys.serial(), serial, "the same bytes are the same set");
        came(&keys, Some("answered 503"));
        assert_eq!((keys.serial(), keys.current().len()), (serial, 1));
        assert_eq!(keys.told().error.as_deref(), Some("answered 503"));
        let next = of_url(Some(&keys));
        assert_eq!(next.serial(), serial);
        keys.take(Ok(keyset()), Timestamp::UNIX_EPOCH);
        assert_eq!(keys.told().error, None);
    }
}
