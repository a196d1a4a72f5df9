/** Parameters of an operation: what the model gives under which name, and where and how it is sent. */
import type { Json } from "@statewright/core";
import { isObject } from "../protocol.ts";
import { type Document, followed, listOf, mapOf, type Part, textAt, unfitPart } from "./document.ts";
import type { SchemaReader } from "./schema.ts";

/** Where a parameter is sent. */
export type ParameterPlace = "path" | "query" | "header" | "cookie";

/** How a value becomes text. */
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject"
  | "json";

/** One parameter. */
export interface Parameter {
  readonly place: ParameterPlace;
  /** Its name in the request. */
  readonly name: string;
  /** Its name among the arguments. */
  readonly argument: string;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  readonly required: boolean;
  readonly schema: Json;
}

const styles: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

/** Headers that are of the request itself, or say who asks: none of them is the model's to set. */
const ownHeaders =
  /^(?:accept|authorization|content-.*|cookie|connection|expect|forwarded|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|via|x-forwarded-.*)$/i;

/** The parameters of an operation and of its path, under names that do not collide. `isTaken` tells which are sent anyway. */
export function parametersOf(
  document: Document,
  lists: readonly unknown[],
  schemas: SchemaReader,
  where: string,
  isTaken: (place: ParameterPlace, name: string) => boolean,
): readonly Parameter[] {
  const found = new Map<string, Omit<Parameter, "argument">>();
  for (const given of lists.flatMap(listOf)) {
    const parameter = parameterOf(document, followed(document, given, where), schemas, where);
    const { place, name } = parameter;
    if (place === "header" && ownHeaders.test(name)) continue;
    // What an operation says goes before what its path says, which was read first.
    if (!isTaken(place, name)) found.set(`${place} ${name}`, parameter);
  }
  return named([...found.values()]);
}

function parameterOf(
  document: Document,
  part: Part,
  schemas: SchemaReader,
  where: string,
): Omit<Parameter, "argument"> {
  const { in: place, name } = part;
  if (typeof name !== "string" || name === "") throw unfitPart(document, where, "has a parameter without a name");
  const at = `the parameter "${name}" of ${where}`;
  if (!isPlace(place)) throw unfitPart(document, at, "is sent nowhere that is known");
  const content = Object.entries(mapOf(part["content"]))[0]?.[1];
  const isJson = content !== undefined;
  const style = isJson ? "json" : (part["style"] ?? styles[place][0]);
  const isKnown = isJson || styles[place].some((known) => known === style);
  if (!isKnown) throw unfitPart(document, at, `has the style ${JSON.stringify(style)}, which is not of the ${place}`);
  const said = schemas.read((isJson ? mapOf(content)["schema"] : part["schema"]) ?? {}, at);
  return {
    place,
    name,
    style: style as ParameterStyle,
    explode: typeof part["explode"] === "boolean" ? part["explode"] : style === "form",
    allowReserved: part["allowReserved"] === true,
    required: place === "path" || part["required"] === true,
    schema: withNotes(said, part),
  };
}

/** What is said of the parameter stands in its schema: it is all that the model sees. */
function withNotes(schema: Json, part: Part): Json {
  if (!isObject(schema)) return schema;
  const description = schema["description"] === undefined ? textAt(part, "description") : undefined;
  const isDeprecated = part["deprecated"] === true;
  if (description === undefined && !isDeprecated) return schema as Json;
  return Object.assign(schema, {
    ...(description === undefined ? {} : { description }),
    ...(isDeprecated ? { deprecated: true } : {}),
  }) as Json;
}

/** `body` is the body's, and the others are refused in arguments of any tool. */
const unfitNames: ReadonlySet<string> = new Set(["body", "constructor", "prototype"]);

/**
 * Arguments are named like their parameters. Names that stand in several places say which: `path_id` and `query_id`; what is
 * no plain name becomes one; and where names are the same then, the later ones have a number.
 */
function named(parameters: readonly Omit<Parameter, "argument">[]): readonly Parameter[] {
  const taken = new Set(["body"]);
  return parameters.map((parameter) => {
    const { place, name } = parameter;
    const isShared = unfitNames.has(name) || parameters.some((other) => other.name === name && other.place !== place);
    const wanted = plainName(isShared ? `${place}_${name}` : name);
    let argument = wanted;
    for (let count = 2; taken.has(argument); count++) argument = `${wanted}_${count}`;
    taken.add(argument);
    return { ...parameter, argument };
  });
}

function plainName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "");
  return plain === "" ? "value" : plain.slice(0, 60);
}

function isPlace(given: unknown): given is ParameterPlace {
  return given === "path" || given === "query" || given === "header" || given === "cookie";
}
