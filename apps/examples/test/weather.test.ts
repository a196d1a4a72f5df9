import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { currentWeather, weatherInUnits } from "../src/weather.ts";
import { getResultText, getSchema, runConversation, wireText } from "./support/talk.ts";

test("the weather tool shows its one argument, returns one text, and reports a missing city without running [S0.28, S2.28]", async () => {
  const { wires, results, events } = await runConversation(
    [currentWeather],
    [call("get_weather", {}), call(currentWeather, { city: "Paris" })],
  );
  expect(currentWeather.spec.label).toBe("Weather");
  expect(wires[0]?.tools[0]?.description).toBe("Get current weather for a city.");
  expect(getSchema(wires[0])).toEqual({
    type: "object",
    properties: { city: { type: "string", description: "City name" } },
    required: ["city"],
  });
  const [missing, found] = results();
  expect(missing).toMatchObject({ isError: true, error: { kind: "invalid_args" } });
  expect(getResultText(missing)).toContain("missing city");
  expect(events.filter(({ type }) => type === "tool.started")).toHaveLength(1);
  expect(found?.content).toEqual([{ type: "text", text: "Weather in Paris: 72°F, sunny" }]);
  expect(found).not.toHaveProperty("details");
});

test("weather units are an enum for every provider, and text and details use the chosen unit [S4.14]", async () => {
  const { wires, results } = await runConversation(
    [weatherInUnits],
    [
      call(weatherInUnits, { location: "Oslo", units: "celsius" }),
      call(weatherInUnits, { location: "Oslo", units: "fahrenheit" }),
      call(weatherInUnits, { location: "Oslo" }),
      call(weatherInUnits, { location: "toString" }),
    ],
  );
  expect(getSchema(wires[0])).toMatchObject({
    properties: { units: { type: "string", enum: ["celsius", "fahrenheit"] } },
    required: ["location"],
  });
  expect(wireText(wires[0])).not.toMatch(/anyOf|oneOf/);
  expect(results().map(getResultText)).toEqual([
    "Weather in Oslo: cloudy, 7°C",
    "Weather in Oslo: cloudy, 45°F",
    "Weather in Oslo: cloudy, 45°F",
    "No weather station in toString.",
  ]);
  expect(results()[0]?.details).toEqual({ temperature: 7, condition: "cloudy", humidity: 81, location: "Oslo" });
  expect(results()[2]?.details).toMatchObject({ temperature: 45 });
});
