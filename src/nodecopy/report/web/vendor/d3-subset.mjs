// The parts of D3 (https://d3js.org) that the page uses. d3.min.js is made from this file with d3 7.9.2 and esbuild 0.28.2 of npm:
// esbuild d3-subset.mjs --bundle --minify --format=iife --global-name=d3 --legal-comments=none --outfile=d3.min.js
export { ascending, descending, deviation, extent, max, maxIndex, mean, min, range, sum } from "d3-array";
export { axisBottom, axisLeft } from "d3-axis";
export { hcl } from "d3-color";
export { format } from "d3-format";
export { interpolateRgb } from "d3-interpolate";
export { quadtree } from "d3-quadtree";
export { scaleBand, scaleLinear, scaleSymlog } from "d3-scale";
export { create, pointer, select } from "d3-selection";
export { zoom, zoomIdentity, zoomTransform } from "d3-zoom";
