//! Whether a cost ceiling can be enforced: every agent that may run must have a known price.

use std::collections::BTreeMap;

use super::executor::{Executor, ExecutorKind};
use super::list_prices::{LIST_PRICES, ListPrices};
use super::money::Price;
use super::repository::RepoConfig;
use super::value_enums::ReviewPolicy;

/// A cost ceiling that could not be enforced, since an agent's cost would stay unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`max_cost_usd` is set, but {} has no price; state it in dollars per million tokens: \
     runnerctl config set prices.{price_name} '{{input = IN, output = OUT}}', or: runnerctl config set max_cost_usd --default",
    describe_agent(.kind.as_str(), .section, .model.as_deref())
)]
pub struct UnpricedBackend {
    /// The section that names the agent.
    pub section: &'static str,
    /// The agent.
    pub kind: ExecutorKind,
    /// The model that the configuration names.
    pub model: Option<String>,
    /// The name under which its price is looked up.
    pub price_name: String,
}

/// A cost ceiling with an agent that chooses its model itself: whether that has a price is known after a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`max_cost_usd` is set, but `{kind}` (in [{section}]) chooses its model itself, and no price is known before its \
     first session; name a model: runnerctl config set {section}.model gpt-6.1-sol"
)]
pub struct UnnamedModel {
    /// The section that names the agent.
    pub section: &'static str,
    /// The agent.
    pub kind: ExecutorKind,
}

fn describe_agent(kind: &str, section: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("the model `{model}` of `{kind}` (in [{section}])"),
        None => format!("`{kind}` (in [{section}]), which reports no cost,"),
    }
}

impl RepoConfig {
    /// Refuses a cost ceiling if some configured agent has no known price.
    pub fn check_cost_limit(&self) -> Result<(), UnpricedBackend> {
        self.limited_executors().try_for_each(|(section, executor)| self.check_price(section, &executor))
    }

    /// Refuses to begin sessions under a cost ceiling if their price would be known only after the first of them.
    pub fn check_named_models(&self) -> Result<(), UnnamedModel> {
        let is_unknown = |executor: &Executor| reports_own_model(executor) && self.price_of(executor, None).is_none();
        match self.limited_executors().find(|(_, executor)| is_unknown(executor)) {
            Some((section, Executor { kind, .. })) => Err(UnnamedModel { section, kind }),
            None => Ok(()),
        }
    }

    /// Returns the executors whose cost a ceiling limits, each with its section; none if there is no ceiling.
    fn limited_executors(&self) -> impl Iterator<Item = (&'static str, Executor)> {
        let agent_reviews = self.review.by == ReviewPolicy::Agent;
        let is_used = move |section: &str| self.max_cost.is_some() && (section != "executor.review" || agent_reviews);
        let sections = self.executor.by_section().into_iter().filter(move |(section, _)| is_used(section));
        sections.flat_map(|(section, executor)| {
            let kinds = executor.kinds().into_iter();
            kinds.map(|kind| (section, executor.for_fallback(kind))).collect::<Vec<_>>()
        })
    }

    /// Returns the price for what this executor runs: from the file, else from the service's list. `reported` is the
    /// model that the session used, if its agent says so; it applies if the file names none.
    pub fn price_of(&self, executor: &Executor, reported: Option<&str>) -> Option<PriceQuote<'_>> {
        let stated = |name: &str| self.prices.get(name).map(PriceQuote::Stated);
        let listed = |model: &str| LIST_PRICES.price_of(executor.kind, model).map(PriceQuote::Listed);
        let model = executor.model.as_deref();
        stated(price_name(executor)).or_else(|| {
            let model = model.or(reported)?;
            stated(model).or_else(|| listed(model))
        })
    }

    /// Describes which costs of a run's sessions are computed from list prices; `None` if none can be.
    pub fn list_price_note(&self) -> Option<String> {
        let executors = self.executor.by_section();
        let kinds = executors.iter().flat_map(|(_, executor)| {
            executor.kinds().into_iter().map(|kind| executor.for_fallback(kind)).collect::<Vec<_>>()
        });
        let is_listed = |executor: Executor| match self.price_of(&executor, None) {
            Some(quote) => matches!(quote, PriceQuote::Listed(_)),
            None => reports_own_model(&executor),
        };
        kinds.into_iter().any(is_listed).then(|| LIST_PRICES.name())
    }

    /// Returns the models named here that have a list price, with those prices.
    pub fn listed_prices(&self) -> BTreeMap<&str, &Price> {
        let executors = self.executor.by_section().into_iter().map(|(_, executor)| executor);
        let priced = executors.filter_map(|executor| match self.price_of(executor, None)? {
            PriceQuote::Listed(price) => Some((executor.model.as_deref()?, price)),
            PriceQuote::Stated(_) => None,
        });
        priced.collect()
    }

    fn check_price(&self, section: &'static str, executor: &Executor) -> Result<(), UnpricedBackend> {
        let is_known =
            executor.kind.reports_cost() || self.price_of(executor, None).is_some() || reports_own_model(executor);
        if is_known {
            return Ok(());
        }
        let price_name = price_name(executor).to_owned();
        Err(UnpricedBackend { section, kind: executor.kind, model: executor.model.clone(), price_name })
    }
}

/// A price and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceQuote<'a> {
    /// Stated in the configuration.
    Stated(&'a Price),
    /// Listed by the service on the day of the built-in table.
    Listed(&'a Price),
}

impl PriceQuote<'_> {
    /// Returns the price.
    pub fn price(&self) -> &Price {
        match self {
            Self::Stated(price) | Self::Listed(price) => price,
        }
    }
}

/// Whether the price is looked up when the session has reported its model: none is configured, and the agent's own
/// record names the one it chooses. An unpriced model ends a run with a cost ceiling.
fn reports_own_model(executor: &Executor) -> bool {
    executor.model.is_none() && ListPrices::covers(executor.kind)
}

fn price_name(executor: &Executor) -> &str {
    executor.model.as_deref().unwrap_or(executor.kind.as_str())
}
