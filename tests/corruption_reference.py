"""The corruptions again, picture by picture and slowly: as published, on skimage, scipy, OpenCV and Pillow.

`picture` is (H, W, C) bytes and `draws` the stream of one picture, asked in the order of the code under test.
"""

import io

import cv2
import numpy as np
import scipy.ndimage
import skimage.color
import skimage.filters
from PIL import Image


def drawn(numbers):
    """(1, C, H, W) or (1, ...) as numpy, channels last."""
    array = numbers[0].numpy().astype(np.float64)
    return array.transpose(1, 2, 0) if array.ndim == 3 else array


def cut(x):
    """Pixels in [0, 1] to bytes, the fraction cut off but for an error in the last bits."""
    return np.floor(np.clip(x, 0, 1) * 255 + 1e-6).astype(np.uint8)


def gaussian(x, sigma):
    return skimage.filters.gaussian(x, sigma=sigma, channel_axis=-1)


def gaussian_noise(picture, figures, draws):
    return cut(picture / 255 + figures * drawn(draws.normal(*_channels_first(picture))))


def speckle_noise(picture, figures, draws):
    x = picture / 255
    return cut(x + x * figures * drawn(draws.normal(*_channels_first(picture))))


def gaussian_blur(picture, figures, draws):
    return cut(gaussian(picture / 255, figures))


def glass_blur(picture, figures, draws):
    sigma, reach, times = figures
    x = cut(gaussian(picture / 255, sigma))
    height, width = x.shape[:2]
    for _ in range(times):
        offset = np.floor(drawn(draws.uniform(2, height, width)) * 2 * reach).astype(int) - reach
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                dy, dx = offset[h, w]
                # what exchanging two views of one array comes to: both end as the neighbour was
                x[h, w], x[h + dy, w + dx] = x[h + dy, w + dx], x[h, w]
    return cut(gaussian(x / 255, sigma))


def defocus_blur(picture, figures, draws):
    radius, softness = figures
    reach, side = (8, 3) if radius <= 8 else (radius, 5)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disk = (x**2 + y**2 <= radius**2).astype(np.float64)
    kernel = cv2.GaussianBlur(disk / disk.sum(), (side, side), softness)
    channels = [cv2.filter2D(picture[..., c] / 255, -1, kernel) for c in range(picture.shape[2])]
    return cut(np.stack(channels, axis=2))


def moved_line(x, radius, sigma, degrees):
    """ImageMagick's MotionBlurImage: a pixel is a weighted sum along a line, clamped at the border."""
    width = 2 * radius + 1
    kernel = np.array([np.exp(-(i**2) / (2 * sigma**2)) for i in range(width)])
    kernel /= kernel.sum()
    angle = np.deg2rad(degrees)
    point = width * np.cos(angle), width * np.sin(angle)
    length = np.hypot(*point)
    total = np.zeros(x.shape)
    rows, columns = np.arange(x.shape[0]), np.arange(x.shape[1])
    for i in range(width):
        right, down = (int(np.ceil(i * part / length - 0.5)) for part in point)
        from_rows = np.clip(rows + down, 0, x.shape[0] - 1)
        from_columns = np.clip(columns + right, 0, x.shape[1] - 1)
        total += kernel[i] * x[from_rows][:, from_columns]
    return np.floor(total + 0.5)


def motion_blur(picture, figures, draws):
    degrees = float(draws.uniform(1)[0, 0]) * 90 - 45
    return moved_line(picture.astype(np.float64), *figures, degrees).astype(np.uint8)


def clipped_zoom(x, factor):
    height, width = x.shape[:2]
    tall, wide = int(np.ceil(height / factor)), int(np.ceil(width / factor))
    top, left = (height - tall) // 2, (width - wide) // 2
    large = scipy.ndimage.zoom(x[top : top + tall, left : left + wide], (factor, factor, 1), order=1)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    return large[top : top + height, left : left + width]


def zoom_blur(picture, figures, draws):
    count, step = figures
    x = picture / 255
    total = x + sum(clipped_zoom(x, 1 + i * step) for i in range(count))
    return cut(total / (count + 1))


def snow(picture, figures, draws):
    mean, deviation, zoom, least, radius, sigma, share = figures
    layer = drawn(draws.normal(1, *picture.shape[:2])) * deviation + mean
    layer = clipped_zoom(layer, zoom)
    layer[layer < least] = 0
    degrees = float(draws.uniform(1)[0, 0]) * 90 - 135
    layer = moved_line(cut(layer).astype(np.float64), radius, sigma, degrees) / 255
    x = picture / 255
    grey = cv2.cvtColor(x.astype(np.float32), cv2.COLOR_RGB2GRAY)[..., None] if x.shape[2] == 3 else x
    x = share * x + (1 - share) * np.maximum(x, grey * 1.5 + 0.5)
    return cut(x + layer + np.rot90(layer, 2))


def frost(picture, figures, draws, textures):
    which, (down, right) = int(draws.whole(0, 5, 1)[0, 0]), draws.uniform(2)[0].tolist()
    texture = textures[which].numpy().transpose(1, 2, 0)
    height, width = picture.shape[:2]
    top, left = int(down * (texture.shape[0] - height)), int(right * (texture.shape[1] - width))
    ice = texture[top : top + height, left : left + width]
    ice = ice if picture.shape[2] == 3 else ice @ np.array([[0.299], [0.587], [0.114]])
    return cut((figures[0] * picture + figures[1] * ice) / 255)


def plasma(side, decay, noise):
    """Diamond-square, point by point."""
    cloud, step, wobble = np.zeros((side, side)), side, 100.0

    def settle(y, x, around):
        mean = sum(cloud[(y + a) % side, (x + b) % side] for a, b in around) / 4
        cloud[y, x] = mean + wobble * wobble * noise[y, x]

    while step >= 2:
        half = step // 2
        points = [(y, x) for y in range(0, side, step) for x in range(0, side, step)]
        for y, x in points:
            settle(y + half, x + half, [(-half, -half), (-half, half), (half, -half), (half, half)])
        for y, x in points:
            settle(y, x + half, [(-half, 0), (half, 0), (0, -half), (0, half)])
            settle(y + half, x, [(-half, 0), (half, 0), (0, -half), (0, half)])
        step, wobble = half, wobble / decay
    cloud -= cloud.min()
    return cloud / cloud.max()


def fog(picture, figures, draws):
    amount, decay = figures
    height, width = picture.shape[:2]
    side = 2 ** int(np.ceil(np.log2(max(height, width))))
    cloud = plasma(side, decay, drawn(draws.uniform(side, side)) * 2 - 1)[:height, :width, None]
    x = picture / 255
    return cut((x + amount * cloud) * x.max() / (x.max() + amount))


def brightness(picture, figures, draws):
    if picture.shape[2] == 1:
        return cut(picture / 255 + figures)
    x = skimage.color.rgb2hsv(picture)
    x[..., 2] = np.clip(x[..., 2] + figures, 0, 1)
    return cut(skimage.color.hsv2rgb(x))


def saturate(picture, figures, draws):
    if picture.shape[2] == 1:
        return picture
    x = skimage.color.rgb2hsv(picture)
    x[..., 1] = np.clip(x[..., 1] * figures[0] + figures[1], 0, 1)
    return cut(skimage.color.hsv2rgb(x))


def contrast(picture, figures, draws):
    x = picture / 255
    mean = x.mean(axis=(0, 1))
    return cut((x - mean) * figures + mean)


def elastic_transform(picture, figures, draws):
    x = picture / 255
    height, width = x.shape[:2]
    alpha, sigma, shift = (part * min(height, width) for part in figures)
    reach, centre = min(height, width) // 3, np.array([width // 2, height // 2])
    points = np.float32([centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach])
    moved = points + drawn(draws.uniform(3, 2)) * 2 * shift - shift
    matrix = cv2.getAffineTransform(points, moved.astype(np.float32))
    y, x_ = np.mgrid[:height, :width].astype(np.float64)
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]])) @ np.stack([x_.ravel(), y.ravel(), np.ones(y.size)])
    x = _at(x, back[1].reshape(y.shape), back[0].reshape(y.shape), "mirror")
    if alpha:
        across, down = (
            skimage.filters.gaussian(
                drawn(draws.uniform(height, width)) * 2 - 1, sigma, mode="reflect", truncate=3
            )
            * alpha
            for _ in range(2)
        )
        x = _at(x, y + down, x_ + across, "reflect")
    return cut(x)


def warped_by_opencv(picture, matrix):
    height, width = picture.shape[:2]
    return cv2.warpAffine(picture, matrix, (width, height), borderMode=cv2.BORDER_REFLECT_101)


def _at(x, rows, columns, mode):
    channels = [
        scipy.ndimage.map_coordinates(x[..., c], [rows, columns], order=1, mode=mode)
        for c in range(x.shape[2])
    ]
    return np.stack(channels, axis=2)


def pixelate(picture, figures, draws):
    height, width = picture.shape[:2]
    image = _image(picture).resize((int(width * figures), int(height * figures)), Image.Resampling.BOX)
    return _pixels(image.resize((width, height), Image.Resampling.BOX))


def jpeg_compression(picture, figures, draws):
    file = io.BytesIO()
    _image(picture).save(file, "JPEG", quality=figures)
    return _pixels(Image.open(file))


def spatter(picture, figures, draws):
    mean, deviation, sigma, least, strength, mud = figures
    liquid = drawn(draws.normal(1, *picture.shape[:2]))[..., 0] * deviation + mean
    liquid = skimage.filters.gaussian(liquid, sigma=sigma)
    liquid[liquid < least] = 0
    x, grey = picture / 255, np.array([[0.299], [0.587], [0.114]])
    if mud:
        cover = skimage.filters.gaussian(np.where(liquid > least, 1.0, 0.0), sigma=strength)
        cover[cover < 0.8] = 0
        colour = np.array([63, 42, 20]) / 255
        colour = colour if x.shape[2] == 3 else colour @ grey
        return cut(x * (1 - cover[..., None]) + cover[..., None] * colour)
    liquid = (liquid * 255).astype(np.uint8)
    away = cv2.distanceTransform(255 - cv2.Canny(liquid, 50, 150), cv2.DIST_L2, 5)
    _, away = cv2.threshold(away, 20, 20, cv2.THRESH_TRUNC)
    away = cv2.equalizeHist(cv2.blur(away, (3, 3)).astype(np.uint8))
    away = cv2.filter2D(away, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    light = liquid * cv2.blur(away, (3, 3)).astype(np.float32)
    light = light / light.max() * strength if light.max() else light
    colour = np.array([175, 238, 238]) / 255
    colour = colour if x.shape[2] == 3 else colour @ grey
    return cut(x + light[..., None] * colour)


def _channels_first(picture):
    height, width, channels = picture.shape
    return channels, height, width


def _image(picture):
    return Image.fromarray(picture if picture.shape[2] == 3 else picture[..., 0])


def _pixels(image):
    pixels = np.array(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]
