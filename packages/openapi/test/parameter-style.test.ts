import { expect, test } from "vitest";
import { encodePairs, encodePathValue, formatHeaderValue } from "../src/parameter-style.ts";
import type { ParameterStyle } from "../src/parameters.ts";

const list = ["blue", "black", "a,b"];
const map = { R: 100, G: 200 };
const createParameter = (style: ParameterStyle, explode: boolean) => ({ name: "color", style, explode });

test.each([
  ["simple", false, "", "blue", "blue,black,a%2Cb", "R,100,G,200"],
  ["simple", true, "", "blue", "blue,black,a%2Cb", "R=100,G=200"],
  ["label", false, ".", ".blue", ".blue,black,a%2Cb", ".R,100,G,200"],
  ["label", true, ".", ".blue", ".blue.black.a%2Cb", ".R=100.G=200"],
  ["matrix", false, ";color", ";color=blue", ";color=blue,black,a%2Cb", ";color=R,100,G,200"],
  ["matrix", true, ";color", ";color=blue", ";color=blue;color=black;color=a%2Cb", ";R=100;G=200"],
] as const)("a path parameter is serialized: %s with explode %s", (style, explode, empty, plain, ofList, ofMap) => {
  const written = ["", "blue", list, map].map((value) => encodePathValue(createParameter(style, explode), value));
  expect(written).toEqual([empty, plain, ofList, ofMap]);
});

test.each([
  ["form", false, "color=blue", "color=blue,black,a%2Cb", "color=R,100,G,200"],
  ["form", true, "color=blue", "color=blue&color=black&color=a%2Cb", "R=100&G=200"],
  ["spaceDelimited", false, "color=blue", "color=blue%20black%20a%2Cb", "color=R%20100%20G%20200"],
  ["pipeDelimited", false, "color=blue", "color=blue%7Cblack%7Ca%2Cb", "color=R%7C100%7CG%7C200"],
  ["deepObject", true, "color=blue", "color=blue&color=black&color=a%2Cb", "color%5BR%5D=100&color%5BG%5D=200"],
] as const)("a query parameter is serialized: %s with explode %s", (style, explode, plain, ofList, ofMap) => {
  const written = ["blue", list, map].map((value) => encodePairs(createParameter(style, explode), value).join("&"));
  expect(written).toEqual([plain, ofList, ofMap]);
});

test("nested objects are serialized with their full path, reserved characters stay where allowed, and headers are plain", () => {
  expect(encodePairs(createParameter("deepObject", true), { a: { b: [1, 2] }, c: null })).toEqual([
    "color%5Ba%5D%5Bb%5D=1",
    "color%5Ba%5D%5Bb%5D=2",
  ]);
  expect(encodePairs({ ...createParameter("form", true), allowReserved: true }, "a/b?c&d#e+f=g")).toEqual([
    "color=a/b?c%26d%23e%2Bf%3Dg",
  ]);
  expect(formatHeaderValue(createParameter("simple", false), map)).toBe("R,100,G,200");
  expect(formatHeaderValue(createParameter("simple", true), map)).toBe("R=100,G=200");
  expect(encodePathValue(createParameter("simple", false), "\ud800")).toBe("%EF%BF%BD");
});
