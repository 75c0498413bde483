//! Decides how a share is written: `"10%"`.

use super::split;
use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;

/// So many in a hundred, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u8);

impl FromText for Percent {
    const EXPECTED: &'static str = "a share such as \"10%\"";
    const HAS_UNIT: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        const WHOLE: &str = "whole percents, such as \"1%\"";
        if text.contains(['.', ',', '_']) {
            return Err(Wrong::because("is not a whole number").hint(WHOLE));
        }
        let (count, unit) = split(text)?;
        match unit {
            "%" => {}
            "" => return Err(Wrong::because("has no unit").hint("write \"10%\" for one in ten")),
            _ => return Err(Wrong::because("has an unknown unit").hint("the unit is %")),
        }
        let percent = count.and_then(|count| u8::try_from(count).ok());
        percent
            .filter(|percent| *percent <= 100)
            .map(Self)
            .ok_or_else(|| Wrong::because("is more than all: the most is \"100%\""))
    }

    fn shape() -> Shape {
        let pattern = "0*([0-9]|[1-9][0-9]|100)%";
        Shape::like("share", <Self as FromText>::EXPECTED, pattern)
    }
}

/// A share as it is written.
pub(crate) fn spell_percent(percent: u8) -> String {
    format!("{percent}%")
}
