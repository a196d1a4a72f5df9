/** Redacts secrets in strings and in streamed text chunks. */

/** Replacement text of a secret. */
export const redactionMark = "[secret]";

/** Minimum length of a secret: a shorter string occurs in ordinary words by chance. */
export const minSecretCharacters = 4;

/** Redactor of a streamed text. */
export interface TextStream {
  /** Returns the redacted text that is safe to emit. Holds back a suffix that may be the beginning of a secret. */
  readonly push: (piece: string) => string;
  /** Returns the redacted remainder. */
  readonly end: () => string;
}

/**
 * Returns the text with each secret replaced by the redaction mark; the same string without a match. Overlapping
 * secrets share a single mark.
 */
export function redactText(text: string, secrets: readonly string[]): string {
  const ranges = findSecretRanges(text, secrets);
  return ranges.length === 0 ? text : replaceRanges(text, ranges, 0, text.length).text;
}

/**
 * Creates a stream whose chunks together equal {@link redactText} of the whole text. Without secrets, chunks pass
 * unchanged.
 */
export function createRedactedStream(secrets: () => readonly string[]): TextStream {
  let pending = "";
  /** Count of pending characters already covered by an emitted redaction mark. */
  let covered = 0;
  const flush = (text: string, known: readonly string[], open: number): string => {
    const redacted = replaceRanges(text, findSecretRanges(text, known), covered, open);
    pending = text.slice(open);
    covered = Math.max(0, redacted.end - open);
    return redacted.text;
  };
  return {
    push: (piece) => {
      const known = secrets();
      if (known.length === 0 && pending === "") return piece;
      const text = pending + piece;
      return flush(text, known, findOpenStart(text, known));
    },
    end: () => (pending === "" ? "" : flush(pending, secrets(), pending.length)),
  };
}

/** State between two chunks when each chunk is redacted on its own. */
export interface PreviousChunk {
  /** Suffix of the previous chunk that may be the beginning of a secret. */
  readonly end: string;
  /** Part of `end` not yet emitted; may contain a secret that is a prefix of another secret. */
  readonly pending: string;
}

/** Redaction result of a chunk. */
export interface RedactedChunk {
  /** Redacted text that was held back from the previous chunk. */
  readonly released: string;
  readonly text: string;
  readonly previous: PreviousChunk;
}

/**
 * Redacts a chunk and holds back a suffix that may be the beginning of a secret. A suffix shorter than the minimum
 * secret length is emitted: such a match is by chance.
 */
export function redactChunk(text: string, secrets: readonly string[], previous?: PreviousChunk): RedactedChunk {
  const { end = "", pending = "" } = previous ?? {};
  const joined = end + text;
  const crossing = end === "" ? undefined : findSecretRanges(joined, secrets).find(crosses(end.length));
  const openStart = findOpenStart(joined, secrets);
  const pendingStart = end.length - pending.length;
  if (openStart < end.length && crossing === undefined) {
    // The whole chunk continues a possible beginning of a secret.
    const isShort = joined.length - openStart < minSecretCharacters;
    const until = isShort ? end.length : Math.max(openStart, pendingStart);
    return {
      released: redactText(joined.slice(pendingStart, until), secrets),
      text: isShort ? text : "",
      previous: { end: joined.slice(openStart), pending: isShort ? "" : joined.slice(until) },
    };
  }
  const from = crossing?.start ?? end.length;
  const piece = joined.slice(from);
  const lastOpenStart = findOpenStart(piece, secrets);
  const until = piece.length - lastOpenStart < minSecretCharacters ? piece.length : lastOpenStart;
  const redacted = replaceRanges(piece, findSecretRanges(piece, secrets), 0, until);
  return {
    released: redactText(joined.slice(pendingStart, from), secrets),
    text: redacted.text,
    previous: { end: piece.slice(lastOpenStart), pending: piece.slice(Math.max(until, redacted.end)) },
  };
}

function crosses(border: number): (place: TextRange) => boolean {
  return ({ start, end }) => start < border && end > border;
}

/**
 * Returns the start index of the longest suffix that may be the beginning of a secret; the text length without such a
 * suffix.
 */
export function findOpenStart(text: string, secrets: readonly string[]): number {
  let open = text.length;
  for (const secret of secrets) {
    const first = secret.charAt(0);
    let at = text.indexOf(first, Math.max(0, text.length - secret.length + 1));
    while (at !== -1 && at < open) {
      if (secret.startsWith(text.slice(at))) open = at;
      at = text.indexOf(first, at + 1);
    }
  }
  return open;
}

/** Character range of a secret in a text. */
export interface TextRange {
  readonly start: number;
  end: number;
}

/** Finds the character ranges of secrets, in order; overlapping ranges are merged. */
export function findSecretRanges(text: string, secrets: readonly string[]): readonly TextRange[] {
  const all: TextRange[] = [];
  for (const secret of secrets) {
    let last: TextRange | undefined;
    for (let start = text.indexOf(secret); start !== -1; start = text.indexOf(secret, start + 1)) {
      const end = start + secret.length;
      if (last !== undefined && start < last.end) last.end = end;
      else {
        last = { start, end };
        all.push(last);
      }
    }
  }
  if (all.length < 2) return all;
  const ranges: TextRange[] = [];
  for (const range of all.sort((one, other) => one.start - other.start)) {
    const before = ranges.at(-1);
    if (before !== undefined && range.start < before.end) before.end = Math.max(before.end, range.end);
    else ranges.push(range);
  }
  return ranges;
}

/**
 * Replaces the secret ranges of the text up to `until`. Characters before `covered` are already behind a redaction
 * mark. `end` is the end of the last mark.
 */
function replaceRanges(
  text: string,
  ranges: readonly TextRange[],
  covered: number,
  until: number,
): { readonly text: string; readonly end: number } {
  let redacted = "";
  let end = covered;
  for (const place of ranges) {
    if (place.start >= until) break;
    if (place.start >= end) redacted += text.slice(end, place.start) + redactionMark;
    end = Math.max(end, place.end);
  }
  return { text: end < until ? redacted + text.slice(end, until) : redacted, end };
}
