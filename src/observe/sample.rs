//! Decides which lines of a share are written: by the request's id alone, so that all gateways on a
//! request's way, and all times it is asked, decide alike.
//!
//! A caller may choose its ids, and so whether its calls that went well are written; of all others
//! every line is.

/// An odd number without a pattern in its bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether the line of a request with this id is among so many in a million.
#[must_use]
pub(super) fn is_sampled(request_id: &[u8], millionths: u32) -> bool {
    // The high half as a fraction of a million.
    let place = ((hash(request_id) >> 32) * 1_000_000) >> 32;
    place < u64::from(millionths)
}

/// A hash that is the same in every process. It withstands nobody who tries.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(SPREAD);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = words.iter().fold(bytes.len() as u64, |all, word| {
        mix(all, u64::from_le_bytes(*word))
    });
    let mut last = [0; 8];
    for (slot, byte) in last.iter_mut().zip(rest) {
        *slot = *byte;
    }
    hash = mix(hash, u64::from_le_bytes(last));
    // Without this the last bytes decide little.
    mix(hash, SPREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_all_are_none_and_all() {
        for id in ["", "1", "018f2c6e-0000-7000-8000-000000000000"] {
            assert!(!is_sampled(id.as_bytes(), 0));
            assert!(is_sampled(id.as_bytes(), 1_000_000));
        }
    }

    #[test]
    fn what_is_in_a_share_is_in_every_larger_one() {
        for number in 0..1000 {
            let id = format!("request-{number}");
            let first = (0..=100).find(|percent| is_sampled(id.as_bytes(), 10_000 * percent));
            let first = first.unwrap();
            assert!((first..=100).all(|percent| is_sampled(id.as_bytes(), 10_000 * percent)));
        }
    }

    #[test]
    fn as_many_as_were_asked_for_whatever_the_ids_look_like() {
        let made = |number: u32| format!("018f2c6e-{:04x}-7000-8000-{number:012x}", number >> 16);
        let shapes: [&dyn Fn(u32) -> String; 4] = [
            &made,
            &|number| number.to_string(),
            &|number| format!("{number:08}"),
            &|number| format!("trace-{number:x}-of-a-caller-with-long-ids"),
        ];
        for (shape, id) in shapes.iter().enumerate() {
            for percent in [1_u32, 10, 50] {
                let ids = (0..20_000).map(id);
                let count = ids
                    .filter(|id| is_sampled(id.as_bytes(), 10_000 * percent))
                    .count();
                let wanted = 200 * percent as usize;
                let off = count.abs_diff(wanted);
                assert!(off * 5 <= wanted.max(200), "{shape} {percent}: {count}");
            }
        }
    }

    /// Gateways of several builds stand behind one another.
    #[test]
    fn the_choice_is_the_same_in_every_build() {
        let chosen: Vec<_> = (0..100)
            .filter(|number: &u32| is_sampled(number.to_string().as_bytes(), 100_000))
            .collect();
        assert_eq!(chosen, CHOSEN);
    }

    const CHOSEN: [u32; 17] = [
        5, 8, 10, 14, 15, 23, 37, 42, 43, 44, 45, 65, 76, 94, 95, 98, 99,
    ];
}
