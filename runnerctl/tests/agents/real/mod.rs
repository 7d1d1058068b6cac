//! Each case is a function that takes an agent; there is one test per case and agent.

/// Defines the tests of cases: one for each agent whose service enforces an answer.
macro_rules! with_each_agent {
    ($($case:ident),+ $(,)?) => {
        mod codex {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Codex); })+
        }
        mod claude {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Claude); })+
        }
    };
}

/// Makes tests of cases: one for each agent.
macro_rules! with_all_agents {
    ($($case:ident),+ $(,)?) => {
        with_each_agent!($($case),+);
        mod opencode {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Opencode); })+
        }
        mod gemini {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Gemini); })+
        }
    };
}

mod agent;
mod answers;
mod choice;
mod hermetic;
mod inherit;
mod kills;
mod quick_start;
mod services;
mod sessions;
mod silence;
mod stage;
