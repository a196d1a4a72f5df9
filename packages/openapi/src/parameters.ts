/** Parameters of an operation: argument name for the model, location in the request, and serialization. */
import type { Json } from "@statewright/core";
import { isJsonObject } from "@statewright/json-schema";
import { createPartError, type Document, getText, type Part, resolveRefs, toList, toMap } from "./document.ts";
import type { SchemaReader } from "./schema.ts";

/** Location of a parameter in the request. */
export type ParameterLocation = "path" | "query" | "header" | "cookie";

/** Serialization style of a value. */
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject"
  | "json";

/** Parameter of an operation. */
export interface Parameter {
  readonly place: ParameterLocation;
  /** Name in the request. */
  readonly name: string;
  /** Name of the argument. */
  readonly argument: string;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  readonly required: boolean;
  readonly schema: Json;
}

const styles: Readonly<Record<ParameterLocation, readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

/** Headers of the HTTP request or of the caller's identity: never arguments of the model. */
const requestHeaders =
  /^(?:accept|authorization|content-.*|cookie|connection|expect|forwarded|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|via|x-forwarded-.*)$/i;

/** Operation whose parameters are listed. */
export interface ParameterSource {
  readonly document: Document;
  readonly schemas: SchemaReader;
  readonly operationName: string;
  /** Returns true for a parameter that the request sends anyway. */
  readonly isReserved: (place: ParameterLocation, name: string) => boolean;
}

/** Lists the parameters of an operation and of its path, with unique argument names. */
export function listParameters(source: ParameterSource, lists: readonly unknown[]): readonly Parameter[] {
  const byLocation = new Map<string, Omit<Parameter, "argument">>();
  for (const value of lists.flatMap(toList)) {
    const parameter = toParameter(source, resolveRefs(source.document, value, source.operationName));
    const { place, name } = parameter;
    if (place === "header" && requestHeaders.test(name)) continue;
    // Parameters of the operation override parameters of the path, which come first in `lists`.
    if (!source.isReserved(place, name)) byLocation.set(`${place} ${name}`, parameter);
  }
  return nameArguments([...byLocation.values()]);
}

function toParameter({ document, schemas, operationName }: ParameterSource, part: Part): Omit<Parameter, "argument"> {
  const { in: place, name } = part;
  if (typeof name !== "string" || name === "")
    throw createPartError(document, operationName, "has a parameter without a name");
  const location = `the parameter "${name}" of ${operationName}`;
  if (!isParameterLocation(place)) throw createPartError(document, location, "has an unknown location");
  const content = Object.entries(toMap(part["content"]))[0]?.[1];
  const isJson = content !== undefined;
  const style = isJson ? "json" : (part["style"] ?? styles[place][0]);
  const isKnown = isJson || styles[place].some((known) => known === style);
  if (!isKnown)
    throw createPartError(
      document,
      location,
      `has the style ${JSON.stringify(style)}, which is invalid in the ${place}`,
    );
  const valueSchema = schemas.read((isJson ? toMap(content)["schema"] : part["schema"]) ?? {}, location);
  return {
    place,
    name,
    style: style as ParameterStyle,
    explode: typeof part["explode"] === "boolean" ? part["explode"] : style === "form",
    allowReserved: part["allowReserved"] === true,
    required: place === "path" || part["required"] === true,
    schema: addNotes(valueSchema, part),
  };
}

/** Adds description and deprecation of the parameter to its schema: the model sees only the schema. */
function addNotes(schema: Json, part: Part): Json {
  if (!isJsonObject(schema)) return schema;
  const description = schema["description"] === undefined ? getText(part, "description") : undefined;
  const isDeprecated = part["deprecated"] === true;
  if (description === undefined && !isDeprecated) return schema as Json;
  return Object.assign(schema, {
    ...(description === undefined ? {} : { description }),
    ...(isDeprecated ? { deprecated: true } : {}),
  }) as Json;
}

/** `body` is the argument of the body; tools reject the other names in arguments. */
const reservedNames: ReadonlySet<string> = new Set(["body", "constructor", "prototype"]);

/**
 * Creates unique argument names. A name in several locations gets its location as a prefix, such as `path_id` and
 * `query_id`; other characters become `_`; remaining duplicates get a number.
 */
function nameArguments(parameters: readonly Omit<Parameter, "argument">[]): readonly Parameter[] {
  const usedNames = new Set(["body"]);
  return parameters.map((parameter) => {
    const { place, name } = parameter;
    const isShared =
      reservedNames.has(name) || parameters.some((other) => other.name === name && other.place !== place);
    const wanted = toPlainName(isShared ? `${place}_${name}` : name);
    let argument = wanted;
    for (let count = 2; usedNames.has(argument); count++) argument = `${wanted}_${count}`;
    usedNames.add(argument);
    return { ...parameter, argument };
  });
}

function toPlainName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "");
  return plain === "" ? "value" : plain.slice(0, 60);
}

function isParameterLocation(value: unknown): value is ParameterLocation {
  return value === "path" || value === "query" || value === "header" || value === "cookie";
}
