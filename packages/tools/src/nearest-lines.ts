/** Where a text would stand in a file that does not hold it: said to a model that mistyped what it wanted to replace. Pure. */

/** Shown of a line at most. */
const mostShown = 200;

/** Lines that are less alike than this are not what was meant. */
const leastAlike = 0.6;

/** The part of all characters that the lines which two texts share have at least, to be a place. */
const leastShared = 0.3;

/** Lines of the same words, such as a closing brace, that are looked at. */
const mostAlike = 20;

/** In longer texts nothing is looked for: it would take too long. */
const mostSearched = 2 ** 20;

/** A sentence about the lines of `text` that are most like `wanted`, which does not stand there; nothing where none are. */
export function nearestLines(text: string, wanted: string): string | undefined {
  if (text.length > mostSearched) return undefined;
  const lines = text.split("\n");
  const given = wanted.split("\n");
  const at = sharedPlace(lines, given) ?? alikePlace(lines, given);
  if (at === undefined) return undefined;
  const places = given.map((_, index) => index).filter((index) => lines[at + index] !== undefined);
  const other = places.find((index) => !fits(lines[at + index] ?? "", given[index] ?? "", index, given.length));
  const from = at + 1;
  if (other === undefined)
    return `The nearest are the lines from ${from} on, and the file ends before the last one given.`;
  const [is, was] = [lines[at + other] ?? "", given[other] ?? ""];
  const onlySpace = places.every((index) =>
    fits(spaceless(lines[at + index] ?? ""), spaceless(given[index] ?? ""), index, given.length),
  );
  const why = onlySpace ? ", other in white space only" : "";
  if (given.length === 1) return `The nearest is line ${from}${why}: ${shown(is)}.`;
  return `The nearest are lines ${from} to ${Math.min(at + given.length, lines.length)}${why}: line ${at + other + 1} is ${shown(is)}, and was given as ${shown(was)}.`;
}

/** Where lines that were given stand below one another, white space at their ends aside, if they are a good part of all. */
function sharedPlace(lines: readonly string[], given: readonly string[]): number | undefined {
  const places = new Map<string, number[]>();
  let whole = 0;
  for (const [index, line] of given.entries()) {
    const known = line.trim();
    whole += known.length;
    const before = places.get(known) ?? [];
    if (known !== "" && before.length < mostAlike) places.set(known, [...before, index]);
  }
  const shared = new Map<number, number>();
  let best: number | undefined;
  let most = whole * leastShared;
  for (const [index, line] of lines.entries()) {
    const known = line.trim();
    for (const place of places.get(known) ?? []) {
      const at = index - place;
      const length = (shared.get(at) ?? 0) + known.length;
      shared.set(at, length);
      if (at < 0 || length <= most) continue;
      best = at;
      most = length;
    }
  }
  return best;
}

/** Where the line stands that is most like the longest one that was given. */
function alikePlace(lines: readonly string[], given: readonly string[]): number | undefined {
  const longest = given.reduce(
    (long, line, index) => (line.trim().length > (given[long] ?? "").trim().length ? index : long),
    0,
  );
  const wanted = pairsOf((given[longest] ?? "").trim());
  let best: number | undefined;
  let most = leastAlike;
  for (const [index, line] of lines.entries()) {
    const alike = index < longest ? 0 : likeness(wanted, line.trim());
    if (alike <= most) continue;
    best = index - longest;
    most = alike;
  }
  return best;
}

interface Pairs {
  readonly counts: ReadonlyMap<number, number>;
  readonly size: number;
}

function pairsOf(line: string): Pairs {
  const counts = new Map<number, number>();
  for (let at = 1; at < line.length; at++) {
    const pair = pairAt(line, at);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, size: Math.max(0, line.length - 1) };
}

function pairAt(line: string, at: number): number {
  return line.charCodeAt(at - 1) * 65_536 + line.charCodeAt(at);
}

/** Dice's coefficient of the pairs of characters in two lines, from 0 to 1. */
function likeness({ counts, size }: Pairs, line: string): number {
  const other = line.length - 1;
  if (other < size / 2 || other > size * 2 || size === 0) return 0;
  const left = new Map(counts);
  let shared = 0;
  for (let at = 1; at < line.length; at++) {
    const pair = pairAt(line, at);
    const count = left.get(pair) ?? 0;
    if (count === 0) continue;
    left.set(pair, count - 1);
    shared += 1;
  }
  return (2 * shared) / (size + other);
}

/** The first line may begin and the last one may end within a line of the file. */
function fits(line: string, part: string, index: number, count: number): boolean {
  if (count === 1) return line.includes(part);
  if (index === 0) return line.endsWith(part);
  return index === count - 1 ? line.startsWith(part) : line === part;
}

function spaceless(line: string): string {
  return line.replaceAll(/\s+/g, "");
}

function shown(line: string): string {
  return JSON.stringify(line.length > mostShown ? `${line.slice(0, mostShown)}…` : line);
}
