//! Decides what time operators read: wall-clock time, spelled as RFC 3339 in UTC.
//!
//! Wall clocks jump, so nothing is ever timed or limited by this one.

#![allow(clippy::disallowed_methods, reason = "this file owns the wall clock")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

pub use jiff::Timestamp;

/// Tells the time of day.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// Now, as far as anybody knows.
    fn now(&self) -> Timestamp;
}

/// The operating system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    fn now(&self) -> Timestamp {
        Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A clock that stands still until it is set. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualWallClock(Arc<AtomicI64>);

impl ManualWallClock {
    /// A clock that shows this many ms since 1970.
    #[must_use]
    pub fn at(millis: i64) -> Self {
        let clock = Self::default();
        clock.set(millis);
        clock
    }

    /// Sets the clock to this many ms since 1970.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl WallClock for ManualWallClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A moment as `2026-11-30T16:53:23.042Z`: UTC, always ms, rounded down.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    let mut out = Vec::with_capacity(24);
    Rfc3339::default().append(&mut out, at);
    String::from_utf8(out).unwrap_or_default()
}

/// A moment as `Date` has it (RFC 9110 section 5.6.7).
#[must_use]
pub fn http_date(at: Timestamp) -> String {
    let since = u64::try_from(at.as_second()).unwrap_or(0);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(since))
}

/// Spells moments like [`rfc3339`] and remembers the last second, which most share.
#[derive(Clone, Debug, Default)]
pub struct Rfc3339 {
    second: Option<i64>,
    text: String,
}

impl Rfc3339 {
    /// Appends the moment.
    pub fn append(&mut self, out: &mut Vec<u8>, at: Timestamp) {
        let nanos = at.subsec_nanosecond();
        out.extend_from_slice(self.second(at).as_bytes());
        out.push(b'.');
        let millis = nanos.rem_euclid(1_000_000_000) / 1_000_000;
        for place in [100, 10, 1] {
            out.push(b'0' + (millis / place % 10) as u8);
        }
        out.push(b'Z');
    }

    /// Appends the moment as web servers write it, `[30/Nov/2026:16:53:23 +0000]`.
    pub fn append_common(&mut self, out: &mut Vec<u8>, at: Timestamp) {
        let text = self.second(at);
        let (date, time) = text.split_once('T').unwrap_or_default();
        let mut parts = date.rsplitn(3, '-');
        let (day, month, year) = (parts.next(), parts.next(), parts.next());
        let month = month.and_then(|month| month.parse::<usize>().ok());
        let month = month.and_then(|month| MONTHS.get(month.checked_sub(1)?));
        for piece in [
            "[",
            day.unwrap_or("-"),
            "/",
            month.copied().unwrap_or("-"),
            "/",
            year.unwrap_or("-"),
            ":",
            time,
            " +0000]",
        ] {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// The moment's second, `2026-11-30T16:53:23`.
    fn second(&mut self, at: Timestamp) -> &str {
        // Both parts of a moment before 1970 are negative; a second is counted from its start.
        let second = at.as_second() - i64::from(at.subsec_nanosecond() < 0);
        if self.second != Some(second) {
            let whole = Timestamp::from_second(second).unwrap_or(Timestamp::MIN);
            self.text = whole.to_string();
            self.text.truncate(self.text.trim_end_matches('Z').len());
            self.second = Some(second);
        }
        &self.text
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spelled_in_utc_with_milliseconds() {
        let clock = ManualWallClock::at(1_796_057_603_042);
        assert_eq!(rfc3339(clock.now()), "2026-11-30T16:53:23.042Z");
        assert_eq!(http_date(clock.now()), "Mon, 30 Nov 2026 16:53:23 GMT");
        clock.set(0);
        assert_eq!(rfc3339(clock.now()), "1970-01-01T00:00:00.000Z");
        clock.set(-1);
        assert_eq!(rfc3339(clock.now()), "1969-12-31T23:59:59.999Z");
        clock.set(i64::MAX);
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn spelled_as_web_servers_do() {
        let mut spelled = Rfc3339::default();
        for (millis, text) in [
            (1_796_057_603_042, "[30/Nov/2026:16:53:23 +0000]"),
            (0, "[01/Jan/1970:00:00:00 +0000]"),
            (-1, "[31/Dec/1969:23:59:59 +0000]"),
        ] {
            let mut out = Vec::new();
            let at = Timestamp::from_millisecond(millis).unwrap();
            spelled.append_common(&mut out, at);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn the_system_clock_is_past_the_day_this_was_written() {
        assert!(rfc3339(SystemWallClock.now()).as_str() > "2025-01-01T00:00:00.000Z");
    }

    proptest! {
        #[test]
        fn what_is_spelled_reads_back(
            millis in prop::collection::vec(-10_000_000_000_i64..250_000_000_000_000, 1..4),
        ) {
            let mut spelled = Rfc3339::default();
            for millis in millis {
                for millis in [millis, millis + 1, millis] {
                    let at = Timestamp::from_millisecond(millis).unwrap();
                    let mut out = Vec::new();
                    spelled.append(&mut out, at);
                    prop_assert_eq!(out.len(), 24);
                    let text = String::from_utf8(out).unwrap();
                    prop_assert_eq!(text.parse::<Timestamp>().unwrap(), at);
                }
            }
        }
    }
}
