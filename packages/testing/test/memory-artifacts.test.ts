import { memoryArtifacts } from "@statewright/core/store";
import { artifactConformance } from "@statewright/testing/conformance";
import { test } from "vitest";

test.each(artifactConformance)("memory artifacts: $name", ({ run }) => run(memoryArtifacts));
