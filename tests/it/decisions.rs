//! What was decided lately, and why: found by a request's id, by an error's, and by who was refused.
