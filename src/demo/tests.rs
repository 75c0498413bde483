//! The demo as its user runs it.

use super::*;

#[test]
fn every_answer_of_the_walk_is_what_the_rules_say() {
    let mut out = Vec::new();
    let is_right = run(&mut Screen::new(&mut out, false), true).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(is_right, "{out}");
    let answers = table::SCRIPT
        .iter()
        .filter(|act| {
            matches!(
                act,
                script::Act::Call(_) | script::Act::Open(_) | script::Act::Finish(_)
            )
        })
        .count();
    let last = format!("{answers} of {answers} answers are what the rules say");
    assert_eq!(out.lines().last(), Some(&*last));
}
