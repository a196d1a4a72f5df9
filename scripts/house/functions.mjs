// Measures functions: lines, parameters, boolean positional parameters.

import { visitNodes } from "./sources.mjs";

const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/** Lists every function with a body: declarations, arrows, methods and callbacks. */
export function listFunctions(files) {
  const functions = [];
  for (const file of files) {
    visitNodes(file.program, (node, parent) => {
      if (!FUNCTIONS.has(node.type) || !node.body) return;
      const line = file.lineAt(node.start);
      const parameters = node.params.filter((parameter) => getTarget(parameter).name !== "this");
      functions.push({
        name: getName(node, parent),
        path: file.path,
        line,
        lines: file.lineAt(node.end - 1) - line + 1,
        parameters: parameters.length,
        booleans: isTypeGuard(node) ? [] : parameters.filter(isBoolean).map((parameter) => getTarget(parameter).name),
      });
    });
  }
  return functions;
}

function getName(node, parent) {
  const named = node.id ?? parent?.id ?? parent?.key ?? parent?.left;
  const name = named?.name ?? named?.value ?? named?.property?.name;
  if (name !== undefined) return String(name);
  const callee = parent?.type === "CallExpression" ? (parent.callee.property ?? parent.callee) : undefined;
  return callee?.name === undefined ? "(anonymous)" : `(callback of ${callee.name})`;
}

/** The binding of a parameter, without its default and the modifiers of a constructor. */
function getTarget(parameter) {
  if (parameter.type === "TSParameterProperty") return getTarget(parameter.parameter);
  return parameter.type === "AssignmentPattern" ? parameter.left : parameter;
}

/** The annotation is exactly `boolean`, or the default is true or false. */
function isBoolean(parameter) {
  if (parameter.type === "TSParameterProperty") return isBoolean(parameter.parameter);
  if (parameter.type === "AssignmentPattern" && typeof parameter.right.value === "boolean") return true;
  return getTarget(parameter).typeAnnotation?.typeAnnotation.type === "TSBooleanKeyword";
}

function isTypeGuard(node) {
  return node.returnType?.typeAnnotation.type === "TSTypePredicate";
}
