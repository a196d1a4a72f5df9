import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { findDockerfileProblems, parseCopy, parseDockerfile } from "../src/deploy/dockerfile.ts";

const root = new URL("../../../", import.meta.url);
const folder = new URL("packages/statewright/test/docs/deploy/", root);
const page = readFileSync(new URL("docs/deploy.md", root), "utf8");
const dockerfile = readFileSync(new URL("Dockerfile", folder), "utf8");
const ignored = readFileSync(new URL(".dockerignore", folder), "utf8");
// `npm install` of the page creates the manifest and the lockfile.
const context = {
  files: [...readdirSync(folder), "package.json", "package-lock.json"],
  ignored: ignored.split("\n"),
};
const oldestNode = readOldestNode();

test("the page about deployments shows the Dockerfile and the .dockerignore that are beside its program", () => {
  expect(page).toContain(`\`\`\`dockerfile\n${dockerfile}\`\`\``);
  expect(page).toContain(`\`\`\`text\n${ignored}\`\`\``);
});

test("the Dockerfile copies existing files, runs as another user than root, and checks the port that it exposes", () => {
  expect(findDockerfileProblems(dockerfile, { context, oldestNode })).toEqual([]);
});

describe("a fault of a Dockerfile is found:", () => {
  const faults: readonly (readonly [string, string, string, string])[] = [
    ["a missing file", "package.json server.ts", "package.json other.ts", "expected the file other.ts"],
    ["an ignored file", "package.json server.ts", "package.json Dockerfile", "expected !Dockerfile in .dockerignore"],
    ["an unknown stage", "--from=packages", "--from=builder", "expected a stage, got builder"],
    ["root", "USER 10001:10001", "USER root", "got USER root"],
    ["a volume of root", "chown 10001:10001", "chown 1:1", "expected a RUN with chown 10001:10001 /data"],
    ["a program that is not copied", '"server.ts"]', '"index.ts"]', "got node index.ts"],
    ["another exposed port", "EXPOSE 4270", "EXPOSE 80", "expected EXPOSE 4270, got 80"],
    ["a health check of another port", "127.0.0.1:4270", "127.0.0.1:80", "expected HEALTHCHECK at port 4270"],
    ["an old Node", "FROM node:24-slim\n", "FROM node:20-slim\n", "got node:20-slim"],
  ];
  for (const [fault, text, planted, problem] of faults)
    test(fault, () => {
      const broken = dockerfile.replace(text, planted);
      expect(broken).not.toBe(dockerfile);
      expect(findDockerfileProblems(broken, { context, oldestNode }).join("\n")).toContain(problem);
    });
});

test("an instruction before FROM is refused, and a line that ends with a backslash continues", () => {
  expect(() => parseDockerfile("WORKDIR /app\n")).toThrow("expected FROM first, got WORKDIR");
  const [stage] = parseDockerfile("FROM node:24 AS one\nRUN a && \\\n  b\n# RUN c\n");
  expect(stage).toEqual({ image: "node:24", name: "one", instructions: [{ keyword: "RUN", text: "a &&    b" }] });
  expect(parseCopy("--from=one /a /b ./")).toEqual({ from: "one", sources: ["/a", "/b"], target: "./" });
});

/** The oldest Node of the packages that the program imports, such as `22.14`. */
function readOldestNode(): string {
  const manifest = readFileSync(new URL("packages/statewright/package.json", root), "utf8");
  return /"node": ">=([\d.]+)"/.exec(manifest)?.[1] ?? "";
}
