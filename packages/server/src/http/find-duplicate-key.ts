/** Keys that a JSON text repeats: parsers of other programs keep the first value, and JSON.parse keeps the last. */
import type { JsonProblem } from "./find-json-problem.ts";
import { toPointer } from "./to-problem.ts";

/** Object or list that the scan is in. */
interface Level {
  /** Keys of an object so far; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** Key or index of the current item. */
  at: string | number;
}

/** What ends a run of characters without meaning for the scan. */
const marks = /["{}[\],]/g;

/**
 * Returns the first key that an object of a valid JSON text repeats, with the place of the object; undefined when all
 * keys differ. Takes time in the length of the text, and needs no stack for deep values.
 */
export function findDuplicateKey(text: string): JsonProblem | undefined {
  const levels: Level[] = [];
  let isKeyNext = false;
  marks.lastIndex = 0;
  for (let match = marks.exec(text); match !== null; match = marks.exec(text)) {
    const [mark] = match;
    const level = levels.at(-1);
    if (mark === '"') {
      const end = findStringEnd(text, match.index);
      if (isKeyNext && level?.keys !== undefined) {
        const key = String(JSON.parse(text.slice(match.index, end)));
        if (level.keys.has(key)) return createProblem(levels, key);
        level.keys.add(key);
        level.at = key;
        isKeyNext = false;
      }
      marks.lastIndex = end;
    } else if (mark === "{" || mark === "[") {
      isKeyNext = mark === "{";
      levels.push(isKeyNext ? { keys: new Set(), at: "" } : { keys: undefined, at: 0 });
    } else if (mark === ",") {
      isKeyNext = level?.keys !== undefined;
      if (typeof level?.at === "number") level.at += 1;
    } else {
      levels.pop();
      isKeyNext = false;
    }
  }
  return undefined;
}

/** Returns the index after the closing quote of the string that opens at `start`. */
function findStringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text[index - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

function createProblem(levels: readonly Level[], key: string): JsonProblem {
  const pointer = toPointer(levels.slice(0, -1).map(({ at }) => at));
  return { pointer, detail: `has the key ${JSON.stringify(key)} twice`, isTooLarge: false };
}
