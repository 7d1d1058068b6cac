//! Reduces recorded output of real tools, and checks what an agent gets to see of it.
//!
//! The tools are not run. Each sample is what one of them printed for a small failing project, without paths of the
//! machine.

use std::sync::LazyLock;

use proptest::prelude::*;
use runner_core::feedback::reduce;
use runner_core::iteration::transition::MAX_FAILURE;
use runner_core::text::fence::clean;

/// The line between the failures and the rest.
const REST: &str = "[the output without them]\n";

#[expect(clippy::disallowed_methods, reason = "a test may read what was recorded")]
fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/feedback/samples/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A sample, and the texts that must come first in its feedback: names of failures, messages, places.
struct FeedbackCase {
    sample: &'static str,
    heading: &'static str,
    first: &'static [&'static str],
    /// Texts that the rest must contain.
    rest: &'static [&'static str],
}

const CASES: &[FeedbackCase] = &[
    FeedbackCase {
        sample: "cargo-test",
        heading: "[failures: 4, reported by cargo test]",
        first: &[
            "tests::price_is_in_cents",
            "src/lib.rs:34:9",
            "left: Ok(2300)",
            "tests::free_is_zero",
            "nothing is free",
        ],
        rest: &["test result: FAILED. 2 passed; 4 failed", "error: test failed, to rerun pass `--lib`"],
    },
    FeedbackCase {
        sample: "cargo-200",
        heading: "[failures: 200, reported by cargo test]",
        first: &["case_001", "src/lib.rs:12:5", "also failed: ", "more]"],
        rest: &["test result: FAILED. 60 passed; 200 failed"],
    },
    FeedbackCase {
        sample: "cargo-backtrace",
        heading: "[failures: 2, reported by cargo test]",
        first: &["at ./src/lib.rs:34:9", "shop::tests::price_of_words_is_refused", "InvalidDigit"],
        rest: &["test result: FAILED"],
    },
    FeedbackCase {
        sample: "cargo-doctest",
        heading: "[failures: 1, reported by cargo test]",
        first: &["src/lib.rs - price (line 10)", "left: Ok(1500)"],
        rest: &["error: doctest failed"],
    },
    FeedbackCase {
        sample: "cargo-nocapture",
        heading: "[failures: 3, reported by panic]",
        first: &["src/lib.rs:45:9", "basket is not sorted", "src/lib.rs:39:22"],
        rest: &["tests::free_is_zero", "Error: \"nothing is free\"", "4 failed"],
    },
    FeedbackCase {
        sample: "nextest",
        heading: "[failures: 4, reported by nextest]",
        first: &["shop tests::price_is_in_cents", "src/lib.rs:34:9", "Error: \"nothing is free\""],
        rest: &["6 tests run: 2 passed, 4 failed", "error: test run failed"],
    },
    FeedbackCase {
        sample: "nextest-color-backtrace",
        heading: "[failures: 4, reported by nextest]",
        first: &["shop tests::basket_is_sorted", "at ./src/lib.rs:45:9"],
        rest: &["6 tests run: 2 passed, 4 failed"],
    },
    FeedbackCase {
        sample: "rustc",
        heading: "[failures: 3, reported by rustc]",
        first: &["error[E0308]: mismatched types", "--> src/lib.rs:57:5", "--> src/lib.rs:66:5"],
        rest: &["could not compile `shop` (lib test) due to 3 previous errors"],
    },
    FeedbackCase {
        sample: "rustc-color",
        heading: "[failures: 3, reported by rustc]",
        first: &["error[E0425]: cannot find function `missing`", "--> src/lib.rs:61:5"],
        rest: &["could not compile"],
    },
    FeedbackCase {
        sample: "clippy",
        heading: "[failures: 5, reported by rustc]",
        first: &["--> src/lib.rs:61:8", "useless use of `format!`"],
        rest: &["could not compile `shop` (lib) due to 5 previous errors"],
    },
    FeedbackCase {
        sample: "just",
        heading: "[failures: 5, reported by cargo test, just]",
        first: &["src/lib.rs:34:9", "error: recipe `test` failed on line 7 with exit code 101"],
        rest: &["formatted", "test result: FAILED"],
    },
    FeedbackCase {
        sample: "make",
        heading: "[failures: 4, reported by compiler, make]",
        first: &["main.c:4:12: error: implicit", "main.c:8:14: error", "make: *** [Makefile:7: main.o] Error 1"],
        rest: &["gcc -Wall -Werror -c main.c", "cc1: all warnings"],
    },
    FeedbackCase {
        sample: "make-check",
        heading: "[failures: 1, reported by make]",
        first: &["Makefile:11: check"],
        rest: &["checking"],
    },
    FeedbackCase {
        sample: "pytest",
        heading: "[failures: 8, reported by pytest]",
        first: &[
            "test_price[2.30-230]",
            "test_more.py:20: AssertionError",
            "no basket",
            "two dollars and thirty cents",
        ],
        rest: &["7 failed, 4 passed, 1 error", "FAILED test_shop.py::ShopTest::test_price_of_words - ValueError"],
    },
    FeedbackCase {
        sample: "pytest-v-short",
        heading: "[failures: 4, reported by pytest]",
        first: &["test_more.py:29: in test_name_is_text", "assert 5 == 'corner shop'"],
        rest: &["3 failed, 2 passed, 1 error"],
    },
    FeedbackCase {
        sample: "pytest-collect",
        heading: "[failures: 1, reported by pytest]",
        first: &["ERROR collecting bad/test_bad.py", "No module named 'nothing_there'"],
        rest: &["1 error in"],
    },
    FeedbackCase {
        sample: "unittest",
        heading: "[failures: 4, reported by unittest]",
        first: &["test_price_is_in_cents", "\"test_shop.py\", line 12", "2300 != 230", "(item='2.00')"],
        rest: &["Ran 4 tests", "FAILED (failures=3, errors=1)"],
    },
    FeedbackCase {
        sample: "unittest-v",
        heading: "[failures: 4, reported by unittest]",
        first: &["invalid literal for int()", "\"shop.py\", line 10"],
        rest: &["FAILED (failures=3, errors=1)"],
    },
    FeedbackCase {
        sample: "jest",
        heading: "[failures: 4, reported by jest]",
        first: &["shop › price is in cents", "sum.test.js:10:27", "Cannot find module './missing'", "Received: 2300"],
        rest: &["Tests:       3 failed, 2 passed, 5 total", "FAIL ./broken.test.js"],
    },
    FeedbackCase {
        sample: "vitest",
        heading: "[failures: 4, reported by vitest]",
        first: &["shop.test.mjs > shop > price is in cents", "shop.test.mjs:12:27", "expected 2300 to be 230"],
        rest: &["3 failed | 1 passed"],
    },
    FeedbackCase {
        sample: "tsc",
        heading: "[failures: 3, reported by tsc]",
        first: &["src/shop.ts(5,14): error TS2322", "src/shop.ts(11,5)"],
        rest: &[],
    },
    FeedbackCase {
        sample: "tsc-pretty",
        heading: "[failures: 3, reported by tsc]",
        first: &["src/shop.ts:5:14 - error TS2322"],
        rest: &["Found 3 errors", "return missing(text) * 10;"],
    },
    FeedbackCase {
        sample: "eslint",
        heading: "[failures: 2, reported by eslint]",
        first: &["lint.js", "4:12  error    'y' is not defined", "sum.js"],
        rest: &["5 problems (4 errors, 1 warning)"],
    },
    FeedbackCase {
        sample: "mypy",
        heading: "[failures: 2, reported by mypy]",
        first: &["shop.py:9: error: Incompatible types", "shop.py:18: error"],
        rest: &["Found 2 errors in 1 file"],
    },
    FeedbackCase {
        sample: "ruff",
        heading: "[failures: 2, reported by ruff]",
        first: &["F401", "--> shop.py:1:8"],
        rest: &["Found 2 errors."],
    },
    FeedbackCase {
        sample: "ruff-concise",
        heading: "[failures: 2, reported by ruff]",
        first: &["shop.py:1:8: F401"],
        rest: &["Found 2 errors."],
    },
    FeedbackCase {
        sample: "go-test",
        heading: "[failures: 5, reported by go, go test]",
        first: &[
            "TestPrice/2.30",
            "shop_test.go:13: Price(\"2.30\") = 2300, want 230",
            "crash_test.go:7",
            "bad/bad.go:4:9: undefined",
        ],
        rest: &["FAIL\texample.com/shop\t", "ok  \texample.com/shop/ok"],
    },
    FeedbackCase {
        sample: "go-test-v",
        heading: "[failures: 2, reported by go test]",
        first: &["shop_test.go:13: Price(\"2.30\") = 2300, want 230", "--- FAIL: TestWords"],
        rest: &["FAIL\texample.com/shop"],
    },
    FeedbackCase {
        sample: "go-test-json",
        heading: "[failures: 2, reported by go test]",
        first: &["shop_test.go:13: Price(\"2.30\") = 2300, want 230", "--- FAIL: TestWords"],
        rest: &["FAIL\texample.com/shop"],
    },
    FeedbackCase {
        sample: "go-build",
        heading: "[failures: 2, reported by go]",
        first: &["bad/bad.go:4:9: undefined: missing", "bad/bad.go:8:9"],
        rest: &["# example.com/shop/bad"],
    },
];

#[test]
fn failures_of_known_runners_come_first_and_the_rest_is_kept() {
    for case in CASES {
        let text = reduce(&sample(case.sample), MAX_FAILURE);
        let name = case.sample;
        assert!(text.starts_with(case.heading), "{name}:\n{text}");
        let (first, rest) = text.split_once(REST).unwrap_or_else(|| panic!("{name} has no rest:\n{text}"));
        for words in case.first {
            assert!(first.contains(words), "{name} does not begin with `{words}`:\n{text}");
        }
        for words in case.rest {
            assert!(rest.contains(words), "{name} does not end with `{words}`:\n{text}");
        }
    }
}

#[test]
fn samples_are_seen_as_they_are_here() {
    let mut names: Vec<&str> = CASES.iter().map(|case| case.sample).collect();
    names.extend(["own", "prove", "pip-bar"]);
    for name in names {
        insta::with_settings!({ snapshot_path => "seen", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, reduce(&sample(name), MAX_FAILURE));
        });
    }
}

#[test]
fn output_of_an_unknown_tool_keeps_its_first_error_and_its_end() {
    let text = reduce(&sample("own"), 2_000);
    assert!(!text.contains(REST), "{text}");
    for words in
        ["(attempt 1)", "58 lines like these", "(ledger/entries.sql:118)", "ledger check: 2 of 400 orders do not match"]
    {
        assert!(text.contains(words), "`{words}` is lost:\n{text}");
    }
}

#[test]
fn reducing_again_changes_nothing() {
    for case in CASES {
        for limit in [MAX_FAILURE, 3_000] {
            let once = reduce(&sample(case.sample), limit);
            assert_eq!(reduce(once.as_bytes(), limit), once, "{}", case.sample);
        }
    }
    let once = reduce(&sample("own"), MAX_FAILURE);
    assert_eq!(reduce(once.as_bytes(), MAX_FAILURE), once);
}

#[test]
fn small_limits_still_name_the_first_failure() {
    for case in CASES {
        let text = reduce(&sample(case.sample), 1_500);
        assert!(text.len() <= 1_500 && text.starts_with("[failures: "), "{}:\n{text}", case.sample);
        let first = reduce(&sample(case.sample), MAX_FAILURE);
        let name = first.lines().nth(1).expect("a failure has a first line");
        assert!(text.contains(name), "{} does not tell `{name}`:\n{text}", case.sample);
    }
}

/// All lines of all samples.
static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let samples = CASES.iter().map(|case| sample(case.sample));
    samples.flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
});

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => any::<prop::sample::Index>().prop_map(|at| at.get(&LINES).clone()),
        1 => prop::collection::vec(any::<u8>(), 0..80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn reports_in_any_disorder_are_reduced_within_the_limit_and_only_once(
        lines in prop::collection::vec(any_line(), 0..120),
        limit in 0usize..6_000,
    ) {
        let output = lines.join(&b'\n');
        let text = reduce(&output, limit);
        prop_assert!(text.len() <= limit);
        prop_assert_eq!(clean(&text), text.clone());
        prop_assert_eq!(reduce(&output, limit), text.clone());
        let has_failures = text.starts_with("[failures: ");
        let again = reduce(text.as_bytes(), limit);
        prop_assert!(again.len() <= limit && (!has_failures || again == text));
    }
}
