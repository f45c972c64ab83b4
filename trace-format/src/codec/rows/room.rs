//! Bytes and bits under construction, with enough room that writes need no check of the length.

/// Bytes.
#[derive(Debug, Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    /// How many of them count.
    pub len: usize,
}

impl Bytes {
    /// Room for so many bytes or more. Those that are written there count once `len` says so.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() - self.len < bytes {
            self.bytes.resize(2 * (self.len + bytes), 0);
        }
        &mut self.bytes[self.len..]
    }

    /// Those that count.
    pub fn all(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Numbers of some bits each, the lowest bit of each byte first.
#[derive(Debug, Default)]
pub struct Bits {
    pub bytes: Bytes,
    /// Bits that are not in the bytes yet, and how many: less than 32.
    word: u64,
    fill: u32,
}

impl Bits {
    /// How many bytes all bits take.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len + self.fill.div_ceil(8) as usize
    }

    /// Takes so many numbers, or fewer.
    #[inline]
    pub fn writer(&mut self, numbers: usize) -> BitWriter<'_> {
        let Bits { bytes, word, fill } = self;
        bytes.room(4 * numbers);
        BitWriter {
            at: bytes.len,
            word: *word,
            fill: *fill,
            room: &mut bytes.bytes,
            state: (&mut bytes.len, word, fill),
        }
    }

    /// All as bytes.
    pub fn done(mut self) -> Bytes {
        let len = self.len();
        self.bytes.room(4)[..4].copy_from_slice(&(self.word as u32).to_le_bytes());
        self.bytes.len = len;
        self.bytes
    }
}

/// Takes numbers, up to [`BitWriter::done`].
pub struct BitWriter<'a> {
    room: &'a mut [u8],
    at: usize,
    word: u64,
    fill: u32,
    state: (&'a mut usize, &'a mut u64, &'a mut u32),
}

impl BitWriter<'_> {
    /// A number of so many bits: 32 at most.
    #[inline]
    pub fn put(&mut self, number: u64, bits: u8) {
        self.word |= number << self.fill;
        self.fill += u32::from(bits);
        if self.fill >= 32 {
            self.room[self.at..self.at + 4].copy_from_slice(&(self.word as u32).to_le_bytes());
            self.at += 4;
            self.word >>= 32;
            self.fill -= 32;
        }
    }

    /// Ends the writing for this row.
    #[inline]
    pub fn done(self) {
        (*self.state.0, *self.state.1, *self.state.2) = (self.at, self.word, self.fill);
    }
}
