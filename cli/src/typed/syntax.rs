//! `--syntax`: how instructions are written, as it is typed.

use machine::Syntax;

/// See [`Syntax`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SyntaxName {
    /// `mov eax,DWORD PTR [rdi+0x4]`
    #[default]
    Intel,
    /// `mov 0x4(%rdi),%eax`
    Att,
}

impl From<SyntaxName> for Syntax {
    fn from(name: SyntaxName) -> Syntax {
        match name {
            SyntaxName::Intel => Syntax::Intel,
            SyntaxName::Att => Syntax::Att,
        }
    }
}
