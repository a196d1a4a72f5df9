// The packages of Node's binaries declare `os` and `cpu` as plain strings. pnpm reads only lists, and would
// install the binaries of every platform; as lists, only the one that fits is installed.
const asList = (value) => (typeof value === "string" ? [value] : value);

module.exports = {
  hooks: {
    readPackage(pkg) {
      if (/^node-(bin-)?(linux|darwin|win)-/.test(pkg.name ?? "")) {
        pkg.os = asList(pkg.os);
        pkg.cpu = asList(pkg.cpu);
      }
      // One vitest for all packages: where one of them has the API of OpenTelemetry, vitest would be there twice, and
      // matchers that are declared for one copy are unknown to the other.
      if (pkg.name === "vitest") delete pkg.peerDependencies?.["@opentelemetry/api"];
      return pkg;
    },
  },
};
