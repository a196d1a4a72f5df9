// Lists the options of the public option types and the methods of all public types without a doc sentence, as
// `<type>.<member>`. Public option types are the exported interfaces and types of the published entries whose names end
// with `Options`, and the definitions of tools and middleware.
//
// ```
// node scripts/option-docs.mjs
// ```

import { pathToFileURL } from "node:url";
import { listPublicTypes } from "./api-reference.mjs";

const isOptionType = (name) => /Options$|^ToolDefinition$|^Middleware$|^NodePolicy$/.test(name);

/** Returns the options without a doc sentence, sorted. */
export function listUndocumentedOptions() {
  return listUndocumented((_member, type) => isOptionType(type));
}

/** Returns the methods and functions of all public types without a doc sentence, sorted. */
export function listUndocumentedMethods() {
  return listUndocumented(isMethod);
}

function listUndocumented(isListed) {
  const found = new Set();
  for (const { name, declaration, hasDoc } of listPublicTypes())
    for (const member of listMembers(declaration.body ?? declaration.typeAnnotation))
      if (isListed(member, name) && !hasDoc(member)) found.add(`${name}.${member.key.name ?? member.key.value}`);
  return [...found].sort();
}

function isMethod({ type, typeAnnotation }) {
  return type === "TSMethodSignature" || typeAnnotation?.typeAnnotation?.type === "TSFunctionType";
}

/** Returns the properties and methods that a type declares itself, also in the parts of an intersection. */
function listMembers(type) {
  if (type?.type === "TSInterfaceBody") return type.body.filter(isMember);
  if (type?.type === "TSTypeLiteral") return type.members.filter(isMember);
  if (type?.type === "TSIntersectionType") return type.types.flatMap(listMembers);
  return [];
}

function isMember({ type }) {
  return type === "TSPropertySignature" || type === "TSMethodSignature";
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log([...listUndocumentedOptions(), ...listUndocumentedMethods()].join("\n"));
}
