//! What the room as a whole must do.
