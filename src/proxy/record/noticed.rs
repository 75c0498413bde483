//! Decides what is noted of a call beside how it ended: what it supplied, how its caller stands, and what
//! would have refused it. Must never keep the value of a header.

use super::Record;
use crate::http1::Fields;
use crate::limit::Standing;
use crate::protocol::{Noted, Outcome, Step, Supplied};
use crate::state::findings::Finding;

impl Record {
    /// How the caller stands with its tightest quota.
    pub(in crate::proxy) fn stands(&mut self, standing: Standing) {
        let before = self.limit_remaining.unwrap_or(u32::MAX);
        self.limit_remaining = Some(standing.remaining().min(before));
    }

    /// It is a call, with this under its headers.
    pub(in crate::proxy) fn supplied(&mut self, fields: &Fields) {
        if let Some(endpoint) = &self.endpoint {
            let others = endpoint.others.iter();
            let pins = std::iter::once(&endpoint.first).chain(others);
            let pinned = pins.map(|pin| &pin.contract.extension);
            self.supplied = Noted::of(Supplied::new(fields), pinned);
        }
    }

    /// A step in report mode would have refused, for this reason; a quota by its name.
    pub(in crate::proxy) fn would_refuse(
        &mut self,
        step: Step,
        outcome: Outcome,
        quota: Option<&str>,
    ) {
        self.reported.insert(step);
        let Some(endpoint) = &self.endpoint else {
            return;
        };
        endpoint.meters.reported(step);
        if let Some(findings) = &endpoint.findings {
            findings.note(&Finding {
                step,
                outcome,
                quota,
                caller: self.caller.as_ref(),
                request_id: self.request_id.as_str(),
                at: self.ts,
                generation: self.generation,
            });
        }
    }
}
