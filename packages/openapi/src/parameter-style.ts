/** Serialization of parameter values: the styles of OpenAPI, which follow RFC 6570. */
import { isJsonObject } from "@statewright/json-schema";
import type { Parameter } from "./parameters.ts";

type Style = Pick<Parameter, "name" | "style" | "explode"> & { readonly allowReserved?: boolean };

/** Unencoded name and value. */
type Pair = readonly [name: string, value: string];

/** Encodes a value for a path. */
export function encodePathValue({ name, style, explode }: Style, value: unknown): string {
  const items = toItems(value).map(percentEncode);
  const pairs = toPairs(value).map(([key, item]) => [percentEncode(key), percentEncode(item)] as const);
  const isMap = isJsonObject(value);
  const joinPairs = (sign: string): string => pairs.map((pair) => pair.join(sign)).join(",");
  if (style === "json") return percentEncode(JSON.stringify(value));
  if (style === "label") {
    if (isMap) return `.${explode ? pairs.map((pair) => pair.join("=")).join(".") : joinPairs(",")}`;
    return `.${items.join(explode ? "." : ",")}`;
  }
  if (style === "matrix") {
    const formatMatrix = (key: string, text: string): string => (text === "" ? `;${key}` : `;${key}=${text}`);
    if (isMap)
      return explode
        ? pairs.map(([key, item]) => formatMatrix(key, item)).join("")
        : formatMatrix(percentEncode(name), joinPairs(","));
    return explode
      ? items.map((item) => formatMatrix(percentEncode(name), item)).join("")
      : formatMatrix(percentEncode(name), items.join(","));
  }
  return isMap ? joinPairs(explode ? "=" : ",") : items.join(",");
}

/** Formats a value for a header, unencoded. */
export function formatHeaderValue({ style, explode }: Style, value: unknown): string {
  if (style === "json") return JSON.stringify(value);
  if (isJsonObject(value))
    return toPairs(value)
      .map((pair) => pair.join(explode ? "=" : ","))
      .join(",");
  return toItems(value).join(",");
}

/** Encodes a value as `name=value` pairs of a query, a form or a cookie. */
export function encodePairs({ name, style, explode, allowReserved = false }: Style, value: unknown): readonly string[] {
  const encode = allowReserved ? encodeUnreserved : percentEncode;
  const joinPair = (key: string, text: string): string => `${percentEncode(key)}=${text}`;
  const encodeEach = (pairs: readonly Pair[]): readonly string[] =>
    pairs.map(([key, text]) => joinPair(key, encode(text)));
  if (style === "json") return [joinPair(name, encode(JSON.stringify(value)))];
  if (style === "deepObject") return encodeEach(flattenObject(name, value));
  if (!isJsonObject(value) && !Array.isArray(value)) return encodeEach([[name, toText(value)]]);
  if (explode) return encodeEach(isJsonObject(value) ? toPairs(value) : toItems(value).map((item) => [name, item]));
  const items = isJsonObject(value) ? toPairs(value).flat() : toItems(value);
  const separator = style === "spaceDelimited" ? "%20" : style === "pipeDelimited" ? "%7C" : ",";
  return items.length === 0 ? [] : [joinPair(name, items.map(encode).join(separator))];
}

/** Percent-encodes a text for any part of a URL. */
export function percentEncode(text: string): string {
  return encodeURIComponent(toWellFormed(text)).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Encodes a text but keeps reserved characters, except those that would end the value. */
function encodeUnreserved(text: string): string {
  return encodeURI(toWellFormed(text)).replace(/[&#+=[\]]/g, (sign) => encodeURIComponent(sign));
}

function flattenObject(name: string, value: unknown): readonly Pair[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => flattenObject(name, item));
  if (!isJsonObject(value)) return [[name, toText(value)]];
  return Object.entries(value).flatMap(([key, item]) => flattenObject(`${name}[${key}]`, item));
}

function toItems(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(toText) : [toText(value)];
}

function toPairs(value: unknown): readonly Pair[] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : [[key, toText(item)] as const]));
}

/** Converts a value to text; objects and lists become JSON. */
export function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Replaces lone UTF-16 surrogates, which URLs and UTF-8 cannot contain, by U+FFFD. */
export function toWellFormed(text: string): string {
  return Buffer.from(text).toString();
}
