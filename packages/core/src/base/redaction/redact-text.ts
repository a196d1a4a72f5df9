/** Secrets in texts: blotted out wherever they stand, also in texts that come in pieces. */

/** What stands in the place of a secret. */
export const blot = "[secret]";

/** A shorter text stands in too many words by chance. */
export const shortestSecret = 4;

/** A text that comes in pieces. */
export interface TextStream {
  /** What may be told by now: what could be the beginning of a secret is held back until it is known. */
  readonly push: (piece: string) => string;
  /** The rest, which is no secret. */
  readonly end: () => string;
}

/** The text without the secrets in it; the text itself where there is none. Secrets that overlap have one blot. */
export function blotted(text: string, secrets: readonly string[]): string {
  const found = placesIn(text, secrets);
  return found.length === 0 ? text : withBlots(text, found, 0, text.length).told;
}

/** A stream that tells together what {@link blotted} makes of the whole; pieces themselves while there is no secret. */
export function blottedStream(secrets: () => readonly string[]): TextStream {
  let held = "";
  /** So much of what is held stands behind a blot that was told. */
  let covered = 0;
  const tell = (text: string, known: readonly string[], open: number): string => {
    const shown = withBlots(text, placesIn(text, known), covered, open);
    held = text.slice(open);
    covered = Math.max(0, shown.end - open);
    return shown.told;
  };
  return {
    push: (piece) => {
      const known = secrets();
      if (known.length === 0 && held === "") return piece;
      const text = held + piece;
      return tell(text, known, openFrom(text, known));
    },
    end: () => (held === "" ? "" : tell(held, secrets(), held.length)),
  };
}

/** What is known of the piece before, where each piece stands for itself. */
export interface PieceBefore {
  /** Its end, where that could be the beginning of a secret. */
  readonly end: string;
  /** What of that was not told; a secret that another begins with may stand in it. */
  readonly held: string;
}

/** What is told of a piece. */
export interface ToldPiece {
  /** What was held back of the piece before, without secrets. */
  readonly released: string;
  readonly told: string;
  readonly before: PieceBefore;
}

/**
 * The text without the secrets in it, and without an end that could be the beginning of one. Shorter ends stay: they stand
 * there by chance.
 */
export function blottedPiece(text: string, secrets: readonly string[], before?: PieceBefore): ToldPiece {
  const { end = "", held = "" } = before ?? {};
  const both = end + text;
  const across = end === "" ? undefined : placesIn(both, secrets).find(isAcross(end.length));
  const open = openFrom(both, secrets);
  const untold = end.length - held.length;
  if (open < end.length && across === undefined) {
    // The whole piece goes on with what could be the beginning of one.
    const isShort = both.length - open < shortestSecret;
    const until = isShort ? end.length : Math.max(open, untold);
    return {
      released: blotted(both.slice(untold, until), secrets),
      told: isShort ? text : "",
      before: { end: both.slice(open), held: isShort ? "" : both.slice(until) },
    };
  }
  const from = across?.start ?? end.length;
  const piece = both.slice(from);
  const last = openFrom(piece, secrets);
  const until = piece.length - last < shortestSecret ? piece.length : last;
  const shown = withBlots(piece, placesIn(piece, secrets), 0, until);
  return {
    released: blotted(both.slice(untold, from), secrets),
    told: shown.told,
    before: { end: piece.slice(last), held: piece.slice(Math.max(until, shown.end)) },
  };
}

function isAcross(border: number): (place: Place) => boolean {
  return ({ start, end }) => start < border && end > border;
}

/** Where the longest end of the text begins that could be the beginning of a secret; its length where none could. */
export function openFrom(text: string, secrets: readonly string[]): number {
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

/** Where a secret stands. */
export interface Place {
  readonly start: number;
  end: number;
}

/** Where secrets stand, in order; those that overlap are one. */
export function placesIn(text: string, secrets: readonly string[]): readonly Place[] {
  const all: Place[] = [];
  for (const secret of secrets) {
    let last: Place | undefined;
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
  const places: Place[] = [];
  for (const place of all.sort((one, other) => one.start - other.start)) {
    const before = places.at(-1);
    if (before !== undefined && place.start < before.end) before.end = Math.max(before.end, place.end);
    else places.push(place);
  }
  return places;
}

/** The text up to `until`, where up to `covered` it stands behind a blot already; and where the last blot ends. */
function withBlots(
  text: string,
  places: readonly Place[],
  covered: number,
  until: number,
): { readonly told: string; readonly end: number } {
  let told = "";
  let end = covered;
  for (const place of places) {
    if (place.start >= until) break;
    if (place.start >= end) told += text.slice(end, place.start) + blot;
    end = Math.max(end, place.end);
  }
  return { told: end < until ? told + text.slice(end, until) : told, end };
}
