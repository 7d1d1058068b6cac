//! Whether a ceiling on cost can be kept: every agent that may run must have a known price.

use super::executor::{Executor, ExecutorKind};
use super::money::Price;
use super::repository::RepoConfig;
use super::words::Reviewer;

/// A ceiling on cost that could not be kept, since an agent's cost would stay unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`max_cost_usd` is set, but `{kind}` (in [{section}]) reports no cost and has no price; \
     state it in dollars per million tokens: \
     runnerctl config set prices.{price_name} '{{input = IN, output = OUT}}', or remove `max_cost_usd`"
)]
pub struct UnpricedBackend {
    /// The section that names the agent.
    pub section: &'static str,
    /// The agent.
    pub kind: ExecutorKind,
    /// The name under which its price is looked up.
    pub price_name: String,
}

impl RepoConfig {
    /// Refuses a ceiling on cost that some configured agent would make blind.
    pub fn check_ceilings(&self) -> Result<(), UnpricedBackend> {
        if self.max_cost.is_none() {
            return Ok(());
        }
        let agent_reviews = self.review.by == Reviewer::Agent;
        for (section, executor) in self.executor.by_section() {
            if section == "executor.review" && !agent_reviews {
                continue;
            }
            for kind in executor.kinds() {
                self.check_price(section, &executor.for_fallback(kind))?;
            }
        }
        Ok(())
    }

    /// Returns the price of what this executor runs, if the file states it.
    pub fn price_of(&self, executor: &Executor) -> Option<&Price> {
        self.prices.get(price_name(executor))
    }

    fn check_price(&self, section: &'static str, executor: &Executor) -> Result<(), UnpricedBackend> {
        if executor.kind.reports_cost() || self.price_of(executor).is_some() {
            return Ok(());
        }
        let price_name = price_name(executor).to_owned();
        Err(UnpricedBackend { section, kind: executor.kind, price_name })
    }
}

fn price_name(executor: &Executor) -> &str {
    executor.model.as_deref().unwrap_or(executor.kind.as_str())
}
