//! Tests redaction against a simple oracle, both all at once and cut into parts.

use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-abcdefgh12345678";

fn secrets(variables: &[(&str, &str)]) -> Secrets {
    Secrets::from_variables(variables.iter().copied()).unwrap()
}

fn redact_stream(secrets: &Secrets, parts: &[&[u8]]) -> Vec<u8> {
    let mut stream = secrets.stream();
    let mut out = Vec::new();
    for part in parts {
        stream.push(part, &mut out);
        assert!(stream.held_len() < secrets.max_spelling_len().max(1), "it holds back more than a secret");
    }
    stream.finish(&mut out);
    out
}

#[test]
fn secret_is_replaced_by_its_name_and_nothing_else_is() {
    let secrets = secrets(&[("API_KEY", KEY), ("LANG", "en_US.UTF-8")]);
    assert_eq!(
        secrets.redact(&format!("a {KEY}{KEY} b en_US.UTF-8")),
        "a [redacted: API_KEY][redacted: API_KEY] b en_US.UTF-8"
    );
    assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
    assert_eq!(secrets.names_in(KEY.as_bytes()), BTreeSet::from(["API_KEY".to_owned()]));
}

#[test]
fn longer_secret_wins_over_the_one_that_it_begins_with() {
    let secrets = secrets(&[("SHORT_KEY", "abcdefgh"), ("LONG_KEY", "abcdefgh-ijklmnop")]);
    assert_eq!(secrets.redact("x abcdefgh-ijklmnop abcdefgh"), "x [redacted: LONG_KEY] [redacted: SHORT_KEY]");
}

#[test]
fn no_part_of_a_secret_that_overlaps_another_one_is_left() {
    let secrets = secrets(&[("A_KEY", "xxxxSECRET"), ("B_KEY", "SECRETyyyyzz")]);
    assert_eq!(secrets.redact("<xxxxSECRETyyyyzz>"), "<[redacted: A_KEY]>");
}

#[test]
fn other_spellings_of_a_secret_are_found() {
    let secrets = secrets(&[("A_PASSWORD", "p\"ss/w rd+?")]);
    for text in [r#"{"x":"p\"ss/w rd+?"}"#, "https://h/?q=p%22ss%2Fw%20rd%2B%3F&r", "Basic cCJzcy93IHJkKz8="] {
        assert!(secrets.redact(text).contains("[redacted: A_PASSWORD]"), "{text}");
    }
}

#[test]
fn without_secrets_everything_is_as_it_came() {
    let none = secrets(&[("HOME", "/home/somebody"), ("A_KEY", "short")]);
    assert!(none.is_empty());
    assert_eq!(redact_stream(&none, &[b"/home/", b"somebody"]), b"/home/somebody");
}

#[test]
fn secret_that_is_cut_anywhere_is_found() {
    let secrets = secrets(&[("API_KEY", KEY)]);
    let text = format!("before {KEY} after");
    for at in 0..=text.len() {
        let (first, second) = text.as_bytes().split_at(at);
        assert_eq!(redact_stream(&secrets, &[first, second]), b"before [redacted: API_KEY] after", "cut at {at}");
    }
}

#[test]
fn endless_overlapping_secret_is_one_marker_and_holds_nothing_up() {
    let secrets = secrets(&[("A_KEY", "aaaaaaaa")]);
    let parts = vec![b"aaaaa".as_slice(); 1000];
    assert_eq!(redact_stream(&secrets, &parts), b"[redacted: A_KEY]");
}

#[test]
fn cut_inside_of_a_secret_moves_to_its_end() {
    let secrets = secrets(&[("API_KEY", KEY)]);
    let text = format!("ab{KEY}cd");
    assert_eq!(secrets.end_of_secret_at(text.as_bytes(), 5), 2 + KEY.len());
    assert_eq!(secrets.end_of_secret_at(text.as_bytes(), 2), 2);
}

#[test]
fn debug_form_names_variables_and_no_value() {
    let text = format!("{:?}", secrets(&[("API_KEY", KEY)]));
    assert!(text.contains("API_KEY") && !text.contains(KEY), "{text}");
}

/// Marks every byte covered by a spelling, checking each spelling at each position.
fn covered_bytes(values: &[&str], text: &[u8]) -> Vec<bool> {
    let mut covered = vec![false; text.len()];
    for spelling in values.iter().flat_map(|value| secret_spellings::all_spellings(value)) {
        for at in 0..text.len() {
            if text[at..].starts_with(&spelling) {
                covered[at..at + spelling.len()].fill(true);
            }
        }
    }
    covered
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn parts_make_no_difference_and_exactly_the_secrets_are_gone(
        parts in proptest::collection::vec("[ab]{0,12}", 0..12),
        first in "[ab]{8,10}",
        second in "[ab]{8,12}",
    ) {
        let secrets = secrets(&[("A_KEY", &first), ("B_KEY", &second)]);
        let text = parts.concat();
        let bytes: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
        let at_once = secrets.redact(&text).into_owned();
        prop_assert_eq!(String::from_utf8(redact_stream(&secrets, &bytes)).unwrap(), &*at_once);
        let left: String = at_once.replace("[redacted: A_KEY]", "").replace("[redacted: B_KEY]", "");
        let expected: String = text.chars().zip(covered_bytes(&[&first, &second], text.as_bytes())).filter(|(_, hidden)| !hidden).map(|(letter, _)| letter).collect();
        prop_assert_eq!(left, expected);
    }
}
