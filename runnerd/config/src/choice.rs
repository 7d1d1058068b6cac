//! Closed enums whose variants have one spelling, used by the file, its checks and its documents.

/// Declares an enum together with the spellings that a configuration file may use for it.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $spelling:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$note])* #[serde(rename = $spelling)] $variant,)+
        }

        impl $name {
            /// All spellings that a file may use, in order of declaration.
            pub const SPELLINGS: &'static [&'static str] = &[$($spelling),+];

            /// Returns the spelling used in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $spelling,)+
                }
            }

            /// Parses a spelling; `None` if it is unknown.
            pub fn from_spelling(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|choice| choice.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(super) use choices;
