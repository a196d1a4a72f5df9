// Counts function names: verbs at the beginning, and `Of` as a word.

import { visitNodes } from "./sources.mjs";
import { VERBS } from "./verbs.mjs";

const FUNCTIONS = new Set(["ArrowFunctionExpression", "FunctionExpression"]);

/** Lists the names of function declarations and of constants with a function, each name once, at its first place. */
export function listFunctionNames(files) {
  const names = new Map();
  for (const file of files) {
    const add = ({ name, start }) => {
      if (!names.has(name)) names.set(name, { name, path: file.path, line: file.lineAt(start) });
    };
    visitNodes(file.program, (node) => {
      if (node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction") {
        if (node.id) add(node.id);
      } else if (node.type === "VariableDeclaration" && node.kind === "const") {
        for (const { id, init } of node.declarations) if (id.type === "Identifier" && isFunction(init)) add(id);
      }
    });
  }
  return [...names.values()];
}

/** Splits a camelCase or snake_case name into its words, in lower case: `toJSONSchema` is to, json, schema. */
function splitName(name) {
  return (name.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\d+/gu) ?? []).map((word) => word.toLowerCase());
}

/** `listOf` and `callOf` begin with a noun: `Of` leaves the first word without an object. */
export function isVerbFirst(name) {
  const [first, second] = splitName(name);
  return VERBS.has(first) && second !== "of";
}

export function hasOf(name) {
  return splitName(name).includes("of");
}

function isFunction(init) {
  let value = init;
  while (value?.type === "TSAsExpression" || value?.type === "TSSatisfiesExpression") value = value.expression;
  return FUNCTIONS.has(value?.type);
}
