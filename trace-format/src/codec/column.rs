//! Columns of numbers that are differences to the number before.

use crate::codec::bytes::Cursor;

/// A column of differences, decoded as it is read.
#[derive(Debug, Default)]
pub struct Column {
    /// Where it is in the payload.
    position: usize,
    end: usize,
    last: u64,
    /// The values of the current item.
    pub values: Vec<u64>,
}

impl Column {
    /// Decodes the next values, so many.
    pub fn decode(&mut self, payload: &[u8], count: u32) -> Result<(), String> {
        self.values.clear();
        let mut cursor = Cursor::new(&payload[self.position..self.end]);
        for _ in 0..count {
            self.last = cursor.delta(self.last)?;
            self.values.push(self.last);
        }
        self.position += cursor.position();
        Ok(())
    }
}

/// Takes a column from the payload and checks that it holds as many numbers as it should.
pub fn column(
    cursor: &mut Cursor,
    name: &str,
    count: u32,
    len: usize,
    base: u64,
    before: &mut Column,
) -> Result<Column, String> {
    let position = cursor.position();
    let bytes = cursor.take(len)?;
    // Each number ends with the one byte of it that is below 0x80.
    let ends = bytes.iter().filter(|&&byte| byte < 0x80).count();
    if ends != count as usize || bytes.last().is_some_and(|&last| last >= 0x80) {
        return Err(format!("the column of {name} holds {ends} whole numbers; there should be {count}"));
    }
    let values = std::mem::take(&mut before.values);
    Ok(Column { position, end: position + len, last: base, values })
}
