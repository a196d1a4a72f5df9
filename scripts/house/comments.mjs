// Counts the language of comments: their first word, relative and personal pronouns, technical nouns.

import { isTechnicalNoun } from "./nouns.mjs";

/** A shorter comment is a label and has no language to measure. */
const FEWEST_WORDS = 3;

/** First words of a clause in place of a noun. */
const CLAUSES =
  /^(?:what|whatever|who|whoever|whose|whom|which|whichever|whether|where|wherever|how|however|why|that)$/;
const RELATIVES = new Set(["that", "which", "what"]);
/** With their object and possessive forms. */
const PRONOUNS = new Set(["it", "its", "they", "them", "their", "those", "one"]);

/** Instructions to a tool, not to a reader. */
const DIRECTIVE = /^\s*(?:biome-ignore|@ts-|eslint-|v8 ignore|#__PURE__|@__PURE__|\/ <reference)/;

/** Measures the comments with at least three words. Line comments on consecutive lines are one comment. */
export function listComments(files) {
  return files.flatMap((file) =>
    joinLines(file)
      .map(({ text, start }) => ({ ...measureText(text), path: file.path, line: file.lineAt(start) }))
      .filter(({ words }) => words >= FEWEST_WORDS),
  );
}

function measureText(marked) {
  const text = marked.replace(/^[ \t]*\*+/gm, "");
  const words = splitWords(stripCode(text));
  const countIn = (isCounted) => words.filter(isCounted).length;
  return {
    text: text.replace(/\s+/g, " ").trim(),
    words: words.length,
    beginsWithClause: CLAUSES.test(findFirstWord(text)),
    relatives: countIn((word) => RELATIVES.has(word)),
    pronouns: countIn((word) => PRONOUNS.has(word)),
    nouns: countIn(isTechnicalNoun),
  };
}

function splitWords(text) {
  return (text.match(/\p{L}+/gu) ?? []).map((word) => word.toLowerCase());
}

/** Removes fenced blocks, then code spans, including spans across a line end. */
function stripCode(text) {
  return text.replace(/```[\s\S]*?```/g, " ").replace(/`[^`]*`/g, " ");
}

/** Returns "" for a comment that begins with a code span, a number or a sign. */
function findFirstWord(text) {
  return (/^\s*(\p{L}+)/u.exec(text)?.[1] ?? "").toLowerCase();
}

/** Drops directives, and joins line comments on consecutive lines without code. */
function joinLines({ text, comments }) {
  const joined = [];
  let last;
  for (const { type, value, start, end } of comments) {
    if (DIRECTIVE.test(value)) {
      last = undefined;
    } else if (type === "Block") {
      joined.push({ text: value, start });
      last = undefined;
    } else {
      const alone = text.slice(text.lastIndexOf("\n", start - 1) + 1, start).trim() === "";
      if (last !== undefined && alone && /^\r?\n[ \t]*$/.test(text.slice(last.end, start))) {
        last.comment.text += `\n${value}`;
        last.end = end;
      } else {
        const comment = { text: value, start };
        joined.push(comment);
        last = alone ? { comment, end } : undefined;
      }
    }
  }
  return joined;
}
