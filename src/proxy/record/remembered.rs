//! Decides how much of a caller's own text is remembered of a request, for its line in the access log.

/// How much of a caller's text is remembered, in bytes.
const REMEMBERED: usize = 64;

/// The start of method, id and skill, in one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    text: Vec<u8>,
    method: usize,
    id: usize,
}

impl Remembered {
    /// Their starts.
    pub(super) fn of(method: &[u8], id: &[u8], skill: &[u8]) -> Self {
        let mut text = Vec::with_capacity(3 * REMEMBERED);
        let mut put = |part: &[u8]| {
            text.extend_from_slice(part.get(..REMEMBERED).unwrap_or(part));
            text.len()
        };
        let method = put(method);
        let id = put(id);
        put(skill);
        Self { text, method, id }
    }

    /// Method, id and skill; what was empty is `None`.
    pub(super) fn parts(&self) -> [Option<&[u8]>; 3] {
        let part = |from, to| self.text.get(from..to).filter(|part| !part.is_empty());
        [
            part(0, self.method),
            part(self.method, self.id),
            part(self.id, self.text.len()),
        ]
    }
}
