/** How the value of a parameter is written in a request: the styles of OpenAPI, which are those of RFC 6570. */
import { isObject } from "../protocol.ts";
import type { Parameter } from "./parameters.ts";

type Style = Pick<Parameter, "name" | "style" | "explode"> & { readonly allowReserved?: boolean };

/** A name and a value, not encoded yet. */
type Pair = readonly [name: string, value: string];

/** A value in a path, encoded. */
export function inPath({ name, style, explode }: Style, value: unknown): string {
  const items = itemsOf(value).map(encoded);
  const pairs = pairsOf(value).map(([key, item]) => [encoded(key), encoded(item)] as const);
  const isMap = isObject(value);
  const joined = (sign: string): string => pairs.map((pair) => pair.join(sign)).join(",");
  if (style === "json") return encoded(JSON.stringify(value));
  if (style === "label") {
    if (isMap) return `.${explode ? pairs.map((pair) => pair.join("=")).join(".") : joined(",")}`;
    return `.${items.join(explode ? "." : ",")}`;
  }
  if (style === "matrix") {
    const of = (key: string, text: string): string => (text === "" ? `;${key}` : `;${key}=${text}`);
    if (isMap) return explode ? pairs.map(([key, item]) => of(key, item)).join("") : of(encoded(name), joined(","));
    return explode ? items.map((item) => of(encoded(name), item)).join("") : of(encoded(name), items.join(","));
  }
  return isMap ? joined(explode ? "=" : ",") : items.join(",");
}

/** A value in a header, as it is. */
export function inHeader({ style, explode }: Style, value: unknown): string {
  if (style === "json") return JSON.stringify(value);
  if (isObject(value))
    return pairsOf(value)
      .map((pair) => pair.join(explode ? "=" : ","))
      .join(",");
  return itemsOf(value).join(",");
}

/** A value as the pairs of a query, a form or a cookie, encoded: `name=value`. */
export function inPairs({ name, style, explode, allowReserved = false }: Style, value: unknown): readonly string[] {
  const encode = allowReserved ? lightly : encoded;
  const pair = (key: string, text: string): string => `${encoded(key)}=${text}`;
  const each = (pairs: readonly Pair[]): readonly string[] => pairs.map(([key, text]) => pair(key, encode(text)));
  if (style === "json") return [pair(name, encode(JSON.stringify(value)))];
  if (style === "deepObject") return each(deep(name, value));
  if (!isObject(value) && !Array.isArray(value)) return each([[name, textOf(value)]]);
  if (explode) return each(isObject(value) ? pairsOf(value) : itemsOf(value).map((item) => [name, item]));
  const items = isObject(value) ? pairsOf(value).flat() : itemsOf(value);
  const sign = style === "spaceDelimited" ? "%20" : style === "pipeDelimited" ? "%7C" : ",";
  return items.length === 0 ? [] : [pair(name, items.map(encode).join(sign))];
}

/** A text that is safe in any part of an address. */
export function encoded(text: string): string {
  return encodeURIComponent(wellFormed(text)).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Reserved signs stay, save those that would end the value. */
function lightly(text: string): string {
  return encodeURI(wellFormed(text)).replace(/[&#+=[\]]/g, (sign) => encodeURIComponent(sign));
}

function deep(name: string, value: unknown): readonly Pair[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => deep(name, item));
  if (!isObject(value)) return [[name, textOf(value)]];
  return Object.entries(value).flatMap(([key, item]) => deep(`${name}[${key}]`, item));
}

function itemsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [textOf(value)];
}

function pairsOf(value: unknown): readonly Pair[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : [[key, textOf(item)] as const]));
}

/** A value as one text; what has parts is JSON. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Half a pair of UTF-16, which no address and no UTF-8 can hold, becomes the sign for what is unknown. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
