//! Which variables are secret: decided by their names, except for passwords in URLs.

use super::{MAX_SECRET, MIN_SECRET};

/// Parts of a name, between underscores, that make its value a secret.
const SECRET_WORDS: [&str; 18] = [
    "APIKEY",
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "JWT",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "TOKENS",
];
/// Endings of a part that do the same, as in `OPENAIKEY` and `DBPASSWORD`.
const SECRET_ENDINGS: [&str; 5] = ["APIKEY", "PASSWORD", "SECRET", "TOKEN", "PASSPHRASE"];
/// Last parts that mark the value as merely the location of a secret.
const LOCATION_WORDS: [&str; 7] = ["DIR", "FILE", "FOLDER", "PATH", "SOCK", "SOCKET", "PROGRAM"];
/// Most bytes of a name in a marker.
const MAX_NAME: usize = 64;

/// Returns whether a variable's name marks its value as a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut parts = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let is_word = |part: &str| SECRET_WORDS.contains(&part) || SECRET_ENDINGS.iter().any(|end| part.ends_with(end));
    parts.clone().any(is_word) && parts.next_back().is_none_or(|last| !LOCATION_WORDS.contains(&last))
}

/// Returns the secrets in the value of a variable.
pub(super) fn find_secrets<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let value = value.trim();
    let found = if is_secret(name) { Some(value) } else { url_password(value) };
    found.into_iter().flat_map(whole_and_lines).filter(|part| (MIN_SECRET..=MAX_SECRET).contains(&part.len())).collect()
}

/// Programs print a multi-line key line by line, with a prefix; the lines around the key are not secret.
fn whole_and_lines(value: &str) -> impl Iterator<Item = &str> {
    const SHORTEST_LINE: usize = 20;
    let lines = value.lines().map(str::trim).filter(move |line| {
        *line != value && line.len() >= SHORTEST_LINE && !line.starts_with("-----") && !line.contains(' ')
    });
    std::iter::once(value).chain(lines)
}

/// Returns the password in a URL such as `postgres://user:password@host/base`.
fn url_password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

/// Returns a name in its form for a marker: nothing in it needs escaping anywhere.
pub(super) fn marker_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '?' };
    name.chars().take(MAX_NAME).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_secret() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "npm_config__authToken",
            "OPENAIAPIKEY",
            "PGPASSWORD",
            "MY_SECRETS",
            "GH_PAT",
        ] {
            assert!(is_secret(name), "{name}");
        }
    }

    #[test]
    fn ways_to_a_secret_and_words_that_only_contain_one_are_not_secret() {
        for name in ["PATH", "SSH_KEY_FILE", "SSH_AUTH_SOCK", "KEYBOARD", "MONKEY", "PWD", "TOKENIZER", "HOME", "LANG"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn password_of_an_address_is_secret_whatever_the_variable_is_called() {
        assert_eq!(find_secrets("DATABASE_URL", "postgres://me:hunter2hunter2@db:5432/x?y"), ["hunter2hunter2"]);
        assert!(find_secrets("DATABASE_URL", "postgres://db:5432/x@y").is_empty());
    }

    #[test]
    fn key_of_many_lines_is_found_line_by_line_without_its_frame() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END PRIVATE KEY-----\n";
        assert_eq!(find_secrets("DEPLOY_KEY", key), [key.trim(), "MIIEvQIBADANBgkqhkiG9w0B"]);
    }

    #[test]
    fn values_too_short_to_tell_or_too_long_to_hold_are_left_out() {
        assert!(find_secrets("A_KEY", "1234567").is_empty());
        assert_eq!(find_secrets("A_KEY", " 12345678\n"), ["12345678"]);
        assert!(find_secrets("A_KEY", &"x".repeat(MAX_SECRET + 1)).is_empty());
    }
}
