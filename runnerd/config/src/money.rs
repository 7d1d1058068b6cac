//! Amounts of money: exact integers in code, dollars in files.

use protocol::answer::SessionUsage;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of tokens that a price is for.
const TOKENS_PER_PRICE: u128 = 1_000_000;
const MICRO: f64 = 1_000_000.0;
const MAX_DOLLARS: f64 = 1_000_000_000.0;

/// An amount in millionths of a dollar; files and views show dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Converts dollars, rounding to a millionth; `None` below zero and from a billion on.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked, the fraction is rounded away"
        )]
        let micro = || (dollars * MICRO).round() as u64;
        (0.0..MAX_DOLLARS).contains(&dollars).then(|| Self(micro()))
    }

    /// Returns the amount in dollars, for display.
    pub fn dollars(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "amounts stay far below 2^53")]
        let micro = self.0 as f64;
        micro / MICRO
    }
}

impl Serialize for MicroUsd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for MicroUsd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Float(dollars), &"an amount of dollars, 0 or more"))
    }
}

/// What a model costs, in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: MicroUsd,
    /// Input tokens read from a cache; the price of `input` if `None`.
    pub cached: Option<MicroUsd>,
    /// Output tokens.
    pub output: MicroUsd,
}

impl Price {
    /// Formats the price as an inline table of a configuration file.
    pub fn to_inline_table(&self) -> String {
        let cached = self.cached.map(|cached| format!("cached = {}, ", cached.dollars())).unwrap_or_default();
        format!("{{ input = {}, {cached}output = {} }}", self.input.dollars(), self.output.dollars())
    }

    /// Returns the cost of a session in millionths of a dollar; `None` if its token counts are unknown.
    pub fn cost_of(&self, usage: &SessionUsage) -> Option<u64> {
        let cost = |tokens: u64, price: MicroUsd| u128::from(tokens) * u128::from(price.0);
        let input = cost(usage.input_tokens?, self.input);
        let cached = cost(usage.cached_tokens.unwrap_or(0), self.cached.unwrap_or(self.input));
        let output = cost(usage.output_tokens?, self.output);
        u64::try_from((input + cached + output).div_ceil(TOKENS_PER_PRICE)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_become_exact_micro_dollars() {
        let cases = [
            (0.0, Some(0)),
            (0.125, Some(125_000)),
            (25.0, Some(25_000_000)),
            (0.000_000_4, Some(0)),
            (-0.01, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e9, None),
        ];
        for (dollars, micro) in cases {
            assert_eq!(MicroUsd::from_dollars(dollars), micro.map(MicroUsd), "{dollars}");
        }
    }

    #[test]
    fn a_price_makes_a_cost_of_what_a_session_said() {
        let price = Price { input: MicroUsd(1_250_000), cached: Some(MicroUsd(125_000)), output: MicroUsd(10_000_000) };
        let usage = |input, output| SessionUsage {
            input_tokens: input,
            cached_tokens: Some(8_000),
            output_tokens: output,
            cost_micro_usd: None,
        };
        assert_eq!(price.cost_of(&usage(Some(1_000), Some(100))), Some(1_250 + 1_000 + 1_000));
        assert_eq!(price.cost_of(&usage(Some(1_000), None)), None, "what is not known is not free");
    }
}
