//! Decides how a table is drawn: what the reader asks for is noted, and nothing is read.

use std::cell::RefCell;
use std::rc::Rc;

use crate::config::read::FromNode;
use crate::config::report::Report;
use crate::config::schema::{Drawing, Shape, Times};
use crate::config::table::Table;

impl<'t> Table<'t> {
    /// No document: what the reader asks for is drawn.
    pub(crate) fn drawn(report: &'t Report<'t>, drawing: Rc<RefCell<Drawing>>) -> Self {
        Self {
            drawing: Some(drawing),
            ..Self::empty(report, "the file", String::new())
        }
    }

    pub(super) fn draw<T: FromNode>(&self, key: &'static str, times: Times) {
        if let Some(drawing) = &self.drawing {
            let shape: fn() -> Shape = T::shape;
            drawing.borrow_mut().key(key, shape(), times);
        }
    }

    /// The table to draw below this one, where this one is drawn.
    pub(super) fn drawn_below(
        &self,
        below: impl FnOnce(&mut Drawing) -> Rc<RefCell<Drawing>>,
        section: &'static str,
    ) -> Option<Self> {
        let drawing = self.drawing.as_ref()?;
        let below = below(&mut drawing.borrow_mut());
        Some(Self {
            drawing: Some(below),
            ..Self::empty(self.report, section, String::new())
        })
    }

    /// Says that there must be one of the tables `[key.NAME]`; `check` finds where there is none.
    pub(crate) fn at_least_one(&self, key: &'static str) {
        if let Some(drawing) = &self.drawing {
            drawing.borrow_mut().require(key, &[]);
        }
    }
}
