//! Built-in prices: the list prices of one day, by model. No network is used, and an actual bill may differ.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::executor::ExecutorKind;
use super::money::Price;

/// The built-in prices.
pub static LIST_PRICES: LazyLock<ListPrices> =
    LazyLock::new(|| toml::from_str(include_str!("prices.toml")).expect("BUG: the table of list prices is wrong"));

/// Prices as listed by a service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListPrices {
    /// The page that lists them.
    pub source: String,
    /// The month in which they were listed.
    pub as_of: String,
    models: BTreeMap<String, Price>,
}

impl ListPrices {
    /// Returns the list price of a model, for an agent of the service that lists it.
    pub fn price_of(&self, kind: ExecutorKind, model: &str) -> Option<&Price> {
        self.models.get(model).filter(|_| Self::covers(kind))
    }

    /// Whether an agent uses the service that lists these prices.
    pub fn covers(kind: ExecutorKind) -> bool {
        kind == ExecutorKind::Codex
    }

    /// Returns the name of these prices, shown with costs computed from them.
    pub fn name(&self) -> String {
        format!("list price, {}", self.as_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MicroUsd;

    #[test]
    fn the_built_in_prices_name_their_source_and_their_date() {
        assert_eq!(LIST_PRICES.source, "https://developers.openai.com/api/docs/pricing");
        assert_eq!(LIST_PRICES.name(), "list price, 2026-11");
        let price = LIST_PRICES.price_of(ExecutorKind::Codex, "gpt-6.1-sol").unwrap();
        assert_eq!((price.input, price.output), (MicroUsd(2_000_000), MicroUsd(10_000_000)));
        assert_eq!(price.cached, Some(MicroUsd(100_000)));
    }

    #[test]
    fn what_is_not_listed_or_asked_elsewhere_has_no_list_price() {
        assert_eq!(LIST_PRICES.price_of(ExecutorKind::Codex, "gpt-6-luna"), None);
        assert_eq!(LIST_PRICES.price_of(ExecutorKind::Command, "gpt-5"), None);
    }
}
