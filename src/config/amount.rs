//! Decides how amounts are written: durations (`"250ms"`), sizes (`"64KiB"`), rates (`"60/min"`).
//! An integer and a unit; no bare numbers, no fractions, no spaces, one spelling each.
//!
//! Must never round, saturate or overflow: what does not fit is a problem.

use std::time::Duration;

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;

/// The longest duration, a year of 365 days: beyond it, clocks overflow and nobody waits.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
const SIZE_UNITS: [(&str, u64); 4] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const RATE_UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3600), ("day", 86_400)];

/// The pattern of a count.
const NOT_ZERO: &str = "0*[1-9][0-9]*";

/// The pattern of a unit.
fn names(units: &[(&str, u64)]) -> String {
    let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    names.join("|")
}

impl FromText for Duration {
    const EXPECTED: &'static str = "a duration such as \"250ms\", \"2s\", \"5m\" or \"1h\"";
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        const UNITS: &str = "the units are ms, s, m and h, such as \"250ms\"";
        let (count, unit) = split(text)?;
        let factor = match DURATION_UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => factor,
            None if unit.is_empty() => return Err(Wrong::because("has no unit").hint(UNITS)),
            None if ["min", "mins", "minute", "minutes"].contains(&unit) => {
                return Err(
                    Wrong::because("has an unknown unit").hint("minutes are written \"5m\"")
                );
            }
            None => return Err(Wrong::because("has an unknown unit").hint(UNITS)),
        };
        count
            .and_then(|count| count.checked_mul(*factor))
            .map(Self::from_millis)
            .filter(|duration| *duration <= LONGEST)
            .ok_or_else(|| Wrong::because("is too long: the longest duration is \"8760h\""))
    }

    fn shape() -> Shape {
        let pattern = format!("[0-9]+({})", names(&DURATION_UNITS));
        Shape::like("duration", <Self as FromText>::EXPECTED, &pattern)
    }
}

/// A duration that is not zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonZeroDuration(pub(crate) Duration);

impl FromText for NonZeroDuration {
    const EXPECTED: &'static str = Duration::EXPECTED;
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        match Duration::from_text(text)? {
            Duration::ZERO => Err(Wrong::because("is zero: everything would time out at once")
                .hint("a long time such as \"24h\" is as good as none")),
            duration => Ok(Self(duration)),
        }
    }

    fn shape() -> Shape {
        let pattern = format!("{NOT_ZERO}({})", names(&DURATION_UNITS));
        Shape::like("time", "a duration that is not zero", &pattern)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl FromText for Size {
    const EXPECTED: &'static str = "a size such as \"512B\", \"64KiB\", \"1MiB\" or \"1GiB\"";
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        const UNITS: &str = "the units are B, KiB, MiB and GiB, such as \"64KiB\"";
        let (count, unit) = split(text)?;
        let factor = match SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => factor,
            None if unit.is_empty() => return Err(Wrong::because("has no unit").hint(UNITS)),
            None if ["k", "kb", "m", "mb", "g", "gb"].contains(&unit.to_lowercase().as_str()) => {
                let hint = "write KiB (1024 bytes), MiB or GiB";
                return Err(Wrong::because("has a unit that means two things").hint(hint));
            }
            None => return Err(Wrong::because("has an unknown unit").hint(UNITS)),
        };
        match count.and_then(|count| count.checked_mul(*factor)) {
            None => Err(Wrong::because("is too large")),
            Some(0) => Err(Wrong::because("is zero")),
            Some(bytes) => Ok(Self(bytes)),
        }
    }

    fn shape() -> Shape {
        let pattern = format!("{NOT_ZERO}({})", names(&SIZE_UNITS));
        Shape::like("size", <Self as FromText>::EXPECTED, &pattern)
    }
}

/// So many per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// At least 1.
    pub(crate) count: u32,
    /// Whole seconds.
    pub(crate) period: Duration,
}

impl Rate {
    /// The time in which one is let through, rounded down to whole nanoseconds; at least 1 ns.
    pub(crate) fn interval(self) -> Duration {
        self.period.checked_div(self.count).unwrap_or(self.period)
    }
}

impl FromText for Rate {
    const EXPECTED: &'static str =
        "a rate such as \"10/s\", \"60/min\", \"1000/h\" or \"5000/day\"";
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        const UNITS: &str = "the units are /s, /min, /h and /day, such as \"60/min\"";
        let (count, unit) = split(text)?;
        let Some(unit) = unit.strip_prefix('/') else {
            return Err(if unit.is_empty() {
                Wrong::because("has no period").hint(UNITS)
            } else {
                Wrong::kind().hint(UNITS)
            });
        };
        let Some((_, seconds)) = RATE_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(Wrong::because("has an unknown period").hint(UNITS));
        };
        let count = match count.map(u32::try_from) {
            Some(Ok(0)) => {
                let hint = "a rate lets something through; to close an endpoint, remove it";
                return Err(Wrong::because("is zero").hint(hint));
            }
            Some(Ok(count)) => count,
            Some(Err(_)) | None => {
                return Err(Wrong::because(format!(
                    "is too high: the highest count is {}",
                    u32::MAX
                )));
            }
        };
        let rate = Self {
            count,
            period: Duration::from_secs(*seconds),
        };
        if rate.interval().is_zero() {
            return Err(Wrong::because(
                "is too high: the highest rate is one per nanosecond, \"1000000000/s\"",
            ));
        }
        Ok(rate)
    }

    fn shape() -> Shape {
        let pattern = format!("{NOT_ZERO}/({})", names(&RATE_UNITS));
        Shape::like("rate", <Self as FromText>::EXPECTED, &pattern)
    }
}

/// A part of a whole, in millionths; at most the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// How many millionths a percent is.
const PERCENT: u32 = 10_000;

impl FromText for Percent {
    const EXPECTED: &'static str = "a percentage such as \"5%\" or \"0.5%\"";
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        let Some(number) = text.strip_suffix('%') else {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            return Err(match is_number {
                true => Wrong::because("has no unit").hint("write it with a `%`, such as \"5%\""),
                false => Wrong::kind(),
            });
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !are_digits(whole) || !are_digits(part) {
            return Err(Wrong::kind());
        }
        if part.len() > 4 {
            return Err(Wrong::because(
                "is too fine: at most four digits after the point",
            ));
        }
        let too_much = || Wrong::because("is more than the whole: at most \"100%\"");
        let whole: u32 = whole.parse().map_err(|_| too_much())?;
        let part: u32 = format!("{part:0<4}").parse().map_err(|_| Wrong::kind())?;
        whole
            .checked_mul(PERCENT)
            .and_then(|millionths| millionths.checked_add(part))
            .filter(|millionths| *millionths <= 100 * PERCENT)
            .map(Self)
            .ok_or_else(too_much)
    }

    fn shape() -> Shape {
        let pattern = "[0-9]+(\\.[0-9]{1,4})?%";
        Shape::like("percentage", <Self as FromText>::EXPECTED, pattern)
    }
}

/// A part of a whole, given in millionths, in percent.
pub(crate) fn spell_percent(millionths: u32) -> String {
    let (whole, part) = (millionths / PERCENT, millionths % PERCENT);
    let part = format!("{part:04}");
    match part.trim_end_matches('0') {
        "" => format!("{whole}%"),
        part => format!("{whole}.{part}%"),
    }
}

/// A duration in the largest unit that leaves no rest. Settings have no parts of a ms.
pub(crate) fn spell_duration(duration: Duration) -> String {
    match u64::try_from(duration.as_millis()).unwrap_or(u64::MAX) {
        0 => "0s".to_owned(),
        millis => spell(millis, &DURATION_UNITS),
    }
}

/// A number of bytes in the largest unit that leaves no rest.
pub(crate) fn spell_size(bytes: u64) -> String {
    spell(bytes, &SIZE_UNITS)
}

/// A rate with this interval, in the smallest period that has one; so it has the one that was
/// written, or a smaller one.
///
/// Where an interval came from `count` in a period, the highest count that the period allows at this
/// interval is at least `count`, and gives the same interval, rounded down.
pub(crate) fn spell_rate(interval: Duration) -> String {
    let nanos = interval.as_nanos().max(1);
    let exact = RATE_UNITS.iter().find_map(|(unit, seconds)| {
        let period = Duration::from_secs(*seconds);
        let count = u32::try_from(period.as_nanos() / nanos).unwrap_or(u32::MAX);
        let is_exact = count > 0 && Rate { count, period }.interval() == interval;
        is_exact.then(|| format!("{count}/{unit}"))
    });
    // Not reached by an interval that was made of a rate.
    exact.unwrap_or_else(|| "1/day".to_owned())
}

fn spell(amount: u64, units: &[(&str, u64)]) -> String {
    let largest = units
        .iter()
        .rev()
        .find(|(_, factor)| amount.is_multiple_of(*factor));
    let (unit, factor) = largest.copied().unwrap_or(("", 1));
    format!("{}{unit}", amount / factor)
}

/// The digits, as a number where it fits, and what follows them.
fn split(text: &str) -> Result<(Option<u64>, &str), Wrong> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at_checked(digits).ok_or_else(Wrong::kind)?;
    if count.is_empty() {
        return Err(if text.starts_with('-') {
            Wrong::because("is negative")
        } else {
            Wrong::kind()
        });
    }
    if unit.contains(char::is_whitespace) {
        return Err(Wrong::because("contains a space").hint("number and unit stand together"));
    }
    if unit.starts_with(['.', ',', '_']) {
        return Err(Wrong::because("is not a whole number").hint("choose a smaller unit"));
    }
    Ok((count.parse().ok(), unit))
}
