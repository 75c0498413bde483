//! What is told beside the answer: rules with their lines, who is asking, quotas, headers; and that no
//! secret is.
